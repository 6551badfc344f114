import os

from prefect.automations import Automation
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.events.actions import SendNotification
from prefect.events.schemas.automations import EventTrigger, Posture

webhook = CustomWebhookNotificationBlock(
    name="operators",
    url="https://chat.example/hooks/{{token}}",
    json_data={"text": "{{subject}}: {{body}}"},
    secrets={"token": os.environ["HOOK_TOKEN"]},
)
block = webhook.save("skald-operators", overwrite=True)

Automation(
    name="Tell of SKALD runs that failed",
    trigger=EventTrigger(
        expect={"prefect.flow-run.Failed", "prefect.flow-run.Crashed"},
        match={"prefect.resource.id": "prefect.flow-run.*"},
        match_related={"prefect.resource.role": "tag", "prefect.resource.id": "prefect.tag.skald"},
        posture=Posture.Reactive,
        threshold=1,
    ),
    actions=[
        SendNotification(
            block_document_id=block,
            subject="{{ flow_run.name }} {{ flow_run.state.name }}",
            body="{{ flow_run.state.message }}",
        )
    ],
).create()
