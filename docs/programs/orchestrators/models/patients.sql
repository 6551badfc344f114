{{ config(materialized='view') }}
select * from {{ source('published', 'patients') }}
