"""What stands for the functions that another one calls, so that a test sees what each is given and says what it finds."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest


class Steps:
    """Functions of a module: each notes what it is given, once at most, and returns what is said under its name.

    Attributes:
        given: What each was given, by name, in the order of the calls.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType, returned: dict[str, Any]) -> None:
        self.given: dict[str, Any] = {}
        for name, value in returned.items():
            monkeypatch.setattr(module, name, self._step(name, value))

    def _step(self, name: str, value: Any) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            assert name not in self.given
            self.given[name] = (*given, named) if named else given
            return value

        return step
