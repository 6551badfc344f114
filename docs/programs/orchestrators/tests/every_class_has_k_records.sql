-- Returns a row for each class below k, so that the test fails where there is one.
select {{ var('quasi_identifiers') }}, count(*) as records
from {{ ref('patients') }}
group by all
having count(*) < {{ var('k') }}
