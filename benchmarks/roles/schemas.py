"""Schemas with the roles that are acceptable for each column, and what its made values look like.

A line is ``column: values: roles``. Roles: I identifier, K number of a record, Q quasi-identifier, S sensitive, N insensitive, W withheld,
G weight. Values are made by ``benchmarks.roles.values``.
"""

from __future__ import annotations

from typing import NamedTuple


class Labelled(NamedTuple):
    """A column with what it is.

    Attributes:
        name: Of the column.
        values: What its values look like.
        roles: Which roles are acceptable.
    """

    name: str
    values: str
    roles: str


SCHEMAS: dict[str, str] = {
    "adult": """
        age: int 17 90: Q
        workclass: words 7: Q
        fnlwgt: int 12000 1500000: GN
        education: words 16: Q
        education-num: twin education: QW
        marital-status: words 7: Q
        occupation: words 14: Q
        relationship: words 6: Q
        race: words 5: Q
        sex: words 2: Q
        capital-gain: rare money: SN
        capital-loss: rare money: SN
        hours-per-week: int 1 99: QSN
        native-country: words 40: Q
        income: words 2: S
    """,
    "census_income": """
        age: int 0 90: Q
        class_of_worker: words 9: Q
        detailed_industry_recode: int 0 51: QS
        detailed_occupation_recode: int 0 46: QS
        education: words 17: Q
        wage_per_hour: rare money: S
        enroll_in_edu_inst_last_wk: words 3: QS
        marital_stat: words 7: Q
        major_industry_code: words 24: QS
        major_occupation_code: words 15: QS
        race: words 5: Q
        hispanic_origin: words 10: Q
        sex: words 2: Q
        member_of_a_labor_union: words 3: QS
        reason_for_unemployment: words 6: SQ
        full_or_part_time_employment_stat: words 8: QS
        capital_gains: rare money: S
        capital_losses: rare money: S
        dividends_from_stocks: rare money: S
        tax_filer_stat: words 6: SQ
        region_of_previous_residence: words 6: QS
        state_of_previous_residence: words 50: QS
        detailed_household_and_family_stat: words 38: QS
        detailed_household_summary_in_household: words 8: QS
        instance_weight: float 37 18000: GN
        migration_code_change_in_msa: words 10: QSN
        live_in_this_house_1_year_ago: words 3: QSN
        num_persons_worked_for_employer: int 0 6: QSN
        family_members_under_18: words 5: QS
        country_of_birth_father: words 42: QS
        country_of_birth_self: words 42: QS
        citizenship: words 5: Q
        own_business_or_self_employed: int 0 2: QS
        veterans_benefits: int 0 2: QS
        weeks_worked_in_year: int 0 52: QS
        year: int 94 95: QN
        income_gt_50k: words 2: S
    """,
    "patients": """
        patient_id: number: IK
        blood_group: words 8: QS
        profession: words 16: Q
        age: int 18 90: Q
        bmi: float 16 45: QS
        pin_code: int 110001 111400: Q
        health_condition: words 12: S
    """,
    "visits": """
        visit_id: number: K
        patient_id: person: IK
        admitted: date 2020: Q
        ward: words 12: QSN
        age: int 18 90: Q
        sex: words 2: Q
        zip: code 5: Q
        diagnosis: words 9: S
        length_of_stay: int 0 40: SN
        charges: money: SN
    """,
    "omop_person": """
        person_id: number: IK
        gender_concept_id: int 8507 8508: Q
        year_of_birth: int 1930 2015: Q
        month_of_birth: int 1 12: Q
        day_of_birth: int 1 31: Q
        birth_datetime: moment 1930 80: Q
        race_concept_id: int 8515 8519: Q
        ethnicity_concept_id: int 38003563 38003564: Q
        location_id: int 1 4000: QIKW
        provider_id: int 1 300: IKWQ
        care_site_id: int 1 60: QIKWSN
        person_source_value: uuid: IK
        gender_source_value: words 2: QW
        race_source_value: words 5: QW
        ethnicity_source_value: words 2: QW
    """,
    "omop_visit_occurrence": """
        visit_occurrence_id: number: K
        person_id: person: IK
        visit_concept_id: int 9201 9203: SN
        visit_start_date: date 2018: Q
        visit_start_datetime: moment 2018 5: QW
        visit_end_date: date 2018: Q
        visit_type_concept_id: int 44818517 44818519: SN
        provider_id: int 1 300: IKWQ
        care_site_id: int 1 60: QIKWSN
        visit_source_value: words 5: SN
        admitted_from_concept_id: int 0 5: SN
        discharged_to_concept_id: int 0 5: SN
        preceding_visit_occurrence_id: number: K
    """,
    "omop_condition_occurrence": """
        condition_occurrence_id: number: K
        person_id: person: IK
        condition_concept_id: int 300000 300400: S
        condition_start_date: date 2018: Q
        condition_end_date: date 2018: Q
        condition_type_concept_id: int 32817 32819: SN
        condition_status_concept_id: int 0 3: SN
        stop_reason: words 4: SN
        provider_id: int 1 300: IKWQ
        visit_occurrence_id: person: K
        condition_source_value: icd: S
        condition_status_source_value: words 3: SN
    """,
    "fhir_patient": """
        id: uuid: IK
        meta.lastUpdated: moment 2024 1: NWQ
        identifier.0.value: uuid: I
        active: flag: N
        name.0.family: surname: I
        name.0.given.0: forename: I
        telecom.0.value: phone: I
        gender: words 3: Q
        birthDate: birth: Q
        deceasedBoolean: flag: SQN
        address.0.line.0: street: I
        address.0.city: words 60: Q
        address.0.state: words 20: Q
        address.0.postalCode: code 5: Q
        address.0.country: words 4: QN
        maritalStatus.coding.0.code: words 5: Q
        multipleBirthBoolean: flag: QSN
        communication.0.language.coding.0.code: words 6: Q
        generalPractitioner.0.reference: repeated uuid: IW
        managingOrganization.reference: words 9: QSNIW
    """,
    "fhir_encounter": """
        id: uuid: K
        status: words 4: SN
        class.code: words 4: SN
        type.0.coding.0.display: words 12: SN
        subject.reference: person uuid: IK
        participant.0.individual.reference: repeated uuid: IW
        period.start: moment 2020 4: Q
        period.end: moment 2020 4: Q
        reasonCode.0.coding.0.code: icd: S
        hospitalization.dischargeDisposition.text: words 6: SN
        serviceProvider.reference: words 9: QSNIW
        length.value: int 0 2000: SN
    """,
    "sdtm_dm": """
        STUDYID: words 1: NWK
        DOMAIN: words 1: NW
        USUBJID: uuid: IK
        SUBJID: number: IK
        RFSTDTC: date 2019: Q
        RFENDTC: date 2019: Q
        DTHFL: flag: SQ
        SITEID: code 3: QSN
        INVNAM: surname: I
        BRTHDTC: birth: Q
        AGE: int 18 85: Q
        AGEU: words 1: NQW
        SEX: words 2: Q
        RACE: words 5: Q
        ETHNIC: words 3: Q
        ARMCD: words 3: SN
        ARM: words 3: SNW
        COUNTRY: words 12: Q
    """,
    "sdtm_ae": """
        STUDYID: words 1: NWK
        USUBJID: person uuid: IK
        AESEQ: number: K
        AETERM: words 80: S
        AEDECOD: words 70: S
        AEBODSYS: words 20: S
        AESEV: words 3: S
        AESER: flag: S
        AEREL: words 3: S
        AEACN: words 5: S
        AEOUT: words 5: S
        AESTDTC: date 2019: Q
        AEENDTC: date 2019: Q
        AESTDY: int 1 400: QS
    """,
    "ipums": """
        YEAR: int 2018 2019: QN
        SERIAL: person: IK
        PERNUM: int 1 9: IKSNQ
        HHWT: float 1 900: GN
        PERWT: float 1 900: GN
        STATEFIP: int 1 56: Q
        COUNTYFIP: int 1 300: Q
        PUMA: int 100 9000: Q
        GQ: int 1 5: NSQ
        SEX: int 1 2: Q
        AGE: int 0 95: Q
        MARST: int 1 6: Q
        RACE: int 1 9: Q
        HISPAN: int 0 4: Q
        BPL: int 1 600: Q
        CITIZEN: int 0 4: Q
        EDUC: int 0 11: Q
        EMPSTAT: int 0 3: QS
        OCC: int 10 9800: QS
        IND: int 100 9800: QS
        UHRSWORK: int 0 99: QSN
        INCTOT: money: S
        INCWAGE: rare money: S
        POVERTY: int 0 501: S
        FAMSIZE: int 1 12: QS
        NCHILD: int 0 9: QS
        DIFFREM: int 0 2: S
        HCOVANY: int 1 2: SN
    """,
    "payroll": """
        employee_id: number: IK
        first_name: forename: I
        last_name: surname: I
        ssn: ssn: I
        email: email: I
        date_of_birth: birth: Q
        gender: words 3: Q
        hire_date: date 2005: Q
        department: words 14: QS
        job_title: words 40: QS
        manager_id: int 1 90: IKW
        base_salary: money: S
        bonus: rare money: S
        overtime_hours: int 0 60: SN
        iban: iban: I
        sick_days: int 0 40: S
        performance_rating: int 1 5: S
        city: words 20: Q
        marital_status: words 4: Q
        church_tax: flag: SQ
        comments: sentence: WI
    """,
    "bank_customers": """
        CustomerId: number: IK
        Surname: surname: I
        CreditScore: int 300 850: S
        Geography: words 3: Q
        Gender: words 2: Q
        Age: int 18 92: Q
        Tenure: int 0 10: QSN
        Balance: money: S
        NumOfProducts: int 1 4: SN
        HasCrCard: flag: SN
        IsActiveMember: flag: SN
        EstimatedSalary: money: S
        Exited: flag: SN
        phone: phone: I
        account_number: number: I
        opened_on: date 2010: Q
    """,
    "web_orders": """
        order_id: number: K
        customer_id: person: IK
        customer_email: email: I
        shipping_address: street: I
        city: words 80: Q
        zip: code 5: Q
        country: words 6: Q
        order_date: date 2022: Q
        product_id: int 1000 1400: SN
        product_name: words 90: SN
        category: words 12: SN
        quantity: int 1 9: SN
        unit_price: money: SN
        total: money: SN
        payment_method: words 4: SN
        card_number: card: I
        ip_address: ip: I
        user_agent: words 30: IWSN
        coupon_code: words 12: SN
        returned: flag: SN
        review_score: int 1 5: SN
        review_text: sentence: WI
    """,
    "school_register": """
        student_id: number: IK
        full_name: full name: I
        birth_date: birth: Q
        sex: words 2: Q
        class: words 24: QSN
        grade: int 1 12: QSN
        school: words 6: Q
        guardian_name: full name: I
        guardian_phone: phone: I
        home_address: street: I
        language_at_home: words 9: Q
        religion: words 6: QS
        free_lunch: flag: SQ
        special_needs: flag: S
        absences: int 0 40: S
        math_grade: int 1 20: S
        gpa: float 0 4: S
        teacher: surname: I
    """,
    "krankenhaus": """
        Fallnummer: number: K
        Patientennummer: person: IK
        Nachname: surname: I
        Vorname: forename: I
        Geburtsdatum: birth: Q
        Geschlecht: words 2: Q
        PLZ: code 5: Q
        Wohnort: words 60: Q
        Aufnahmedatum: date 2021: Q
        Entlassungsdatum: date 2021: Q
        Hauptdiagnose: icd: S
        Verweildauer: int 0 60: SN
        Entlassungsart: words 6: SN
        Krankenkasse: words 12: SNQ
        Familienstand: words 5: Q
        Telefon: phone: I
        Bemerkungen: sentence: WI
    """,
    "personnel": """
        matricule: number: IK
        nom: surname: I
        prenom: forename: I
        date_naissance: birth: Q
        sexe: words 2: Q
        code_postal: code 5: Q
        ville: words 40: Q
        situation_familiale: words 5: Q
        nombre_enfants: int 0 6: QS
        date_embauche: date 2008: Q
        poste: words 25: QS
        salaire_brut: money: S
        adresse: street: I
        courriel: email: I
    """,
    "pacientes": """
        id_paciente: number: IK
        nombre: forename: I
        apellidos: surname: I
        dni: number: I
        fecha_nacimiento: birth: Q
        sexo: words 2: Q
        codigo_postal: code 5: Q
        municipio: words 50: Q
        nivel_educativo: words 6: Q
        fecha_ingreso: date 2021: Q
        diagnostico: icd: S
        dias_estancia: int 0 40: SN
        importe: money: SN
        telefono: phone: I
    """,
    "utentes": """
        numero_utente: number: IK
        nome_completo: full name: I
        data_nascimento: birth: Q
        sexo: words 2: Q
        concelho: words 50: Q
        estado_civil: words 5: Q
        profissao: words 30: QS
        data_internamento: date 2021: Q
        diagnostico: icd: S
        rendimento: money: S
        morada: street: I
        observacoes: sentence: WI
    """,
    "ricoveri": """
        codice_fiscale: uuid: I
        cognome: surname: I
        nome: forename: I
        data_nascita: birth: Q
        sesso: words 2: Q
        cap: code 5: Q
        comune: words 50: Q
        titolo_di_studio: words 6: Q
        data_ricovero: date 2021: Q
        diagnosi: icd: S
        giorni_di_degenza: int 0 40: SN
        farmaco: words 30: S
        reddito: money: S
        telefono: phone: I
    """,
}


def labelled(schema: str) -> list[Labelled]:
    """Return the columns of a schema."""
    lines = (line.strip() for line in SCHEMAS[schema].strip().splitlines())
    return [Labelled(*line.rsplit(": ", 2)) for line in lines]
