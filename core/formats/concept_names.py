"""Words of column names: their concept, and whether values number persons, events or places."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple, cast, get_args

Numbered = Literal["person", "event", "place"]


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


NUMBERED: dict[Numbered, frozenset[str]] = {
    "person": word_set(
        "person patient subject member customer client user individual participant respondent employee beneficiary insured "
        "policyholder enrollee subscriber student pupil passenger donor claimant borrower cardholder tenant"
    ),
    "event": word_set(
        "visit encounter episode admission stay hospitalization hospitalisation appointment order transaction purchase "
        "invoice claim payment session event trip ride booking ticket call message prescription procedure specimen sample "
        "test record row line entry"
    ),
    "place": word_set(
        "hospital ward clinic site center centre unit provider doctor physician practitioner nurse staff practice department "
        "dept store shop branch merchant seller vendor supplier product item sku drug device school teacher company employer "
        "firm team station machine batch lot study trial plan"
    ),
}
"""Words for whom a record is about, for what happened to them, and for what many people have in common."""


def words(name: str) -> list[str]:
    """Split a column's name into words in lower case: ``dateOfBirth`` and ``date_of_birth`` have three."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z]+", parted.lower()) if word]


def numbered_by(name: str) -> Numbered | None:
    """Return what a column's name says that its values number: persons, events or places; else None.

    The last such word decides: ``patient_visit_id`` numbers visits.
    """
    told = [kind for word in words(name) for kind, known in NUMBERED.items() if word in known or word.removesuffix("s") in known]
    return told[-1] if told else None


Role = Literal["identifier", "quasi_identifier", "sensitive", "insensitive", "withheld", "key", "weight"]

CONCEPTS = """
identifier: a person's name: name, full name, first name, last name, surname, forename, given name, given, family name, middle name, maiden name, mother maiden name, birth name, preferred name, nick name, nickname, initials, firstname, lastname, middlename, fullname, prename, mother name, father name, spouse name, name family, name given, name text, patient name, customer name, employee name, student name, contact name, guardian name, emergency contact, next of kin, signature, nachname, vorname, familienname, geburtsname, nom, prenom, nom de famille, nom de naissance, nom complet, nombre, apellido, apellidos, primer apellido, segundo apellido, nombre completo, nome, sobrenome, apelido, nome completo, cognome, nome e cognome, nombre y apellidos, =names=, =namelast=, =namefrst=, =prefix=, =suffix=, name prefix, name suffix, =first=, =last=, =maiden=
identifier: a contact: email, e mail, mail, email address, phone, telephone, tel, mobile, cell phone, cell, fax, phone number, home phone, work phone, telecom, telecom value, contact, telefon, handy, mobilnummer, telefonnummer, courriel, telephone portable, numero de telephone, correo, correo electronico, telefono, movil, celular, telefone, telemovel, cellulare, numero di telefono, skype, twitter, facebook, linkedin, instagram, whatsapp, handle
identifier: a street address: address, street, street address, address line, line address, address text, house number, residence address, home address, mailing address, billing address, shipping address, apartment, building, adresse, anschrift, strasse, hausnummer, rue, adresse postale, direccion, calle, domicilio, endereco, rua, morada, indirizzo, via, location address, address 1, address 2
identifier: a government number: ssn, social security number, social security, social insurance number, sin, national id, national insurance number, nino, nhs number, nhs, tax id, tax number, tin, itin, ein, passport, passport number, driver license, drivers license, driving licence, licence number, license number, license plate, licence plate, plate, number plate, vehicle id, vin, voter id, identity card, id card, id number, personal number, personnummer, bsn, cpf, cnp, pesel, rut, dni, nif, nie, nir, curp, rfc, aadhaar, pan number, medicare number, medicaid id, insurance number, policy number, sozialversicherungsnummer, steuernummer, steuer id, personalausweis, reisepass, reisepassnummer, kennzeichen, versichertennummer, krankenversichertennummer, kvnr, numero de securite sociale, securite sociale, passeport, plaque, numero de documento, documento, pasaporte, matricula vehiculo, numero de identificacion, cedula, seguridad social, passaporte, contribuinte, numero de contribuinte, codice fiscale, partita iva, carta identita, patente, targa, =drivers=
identifier: a person's number: person id, patient id, patient number, patient nbr, patient, subject id, subject identifier, unique subject identifier, usubjid, =subjid=, =rsubjid=, rfid, participant id, respondent id, =caseid=, case id, client id, customer id, customer number, client number, clientnum, =client=, =customer=, member id, member number, employee id, employee number, staff id, payroll number, worker id, user id, username, user name, user, login, login name, screen name, student id, student number, pupil id, matriculation number, beneficiary id, subscriber id, insured id, policyholder id, policy holder, enrollee id, enrolid, bene id, desynpuf id, mrn, medical record number, record number, =individual id=, individual id, personid, =pid=, =eid=, =empid=, =uid=, =cust id=, identifier, identifier value, national identifier, reference number, person source value, subject reference, patient reference, borrower id, donor id, applicant id, voter number, passenger id, =serial=, =pernum=, =cpsidp=, =cpsid=, =serialno=, =sporder=, =cpsidv=, =histid=, personennummer, patientennummer, patientennr, patienten id, kundennummer, kundennr, kunden id, personalnummer, mitarbeiternummer, mitgliedsnummer, matrikelnummer, schueler id, schuelernummer, benutzername, numero patient, id patient, identifiant, matricule, numero client, id client, numero de paciente, id paciente, historia clinica, numero de historia, id cliente, numero de cliente, id empleado, numero de empleado, legajo, numero do paciente, id utente, utente, numero de cliente, matricula, codice paziente, id paziente, codice cliente, numero cartella, matricola, =cbserial=
identifier: another person's name or number: officer id, officer name, officer, badge number, badge, provider id, physician id, doctor id, doctor name, physician name, physician, doctor, provider name, practitioner, practitioner reference, attending physician, attending, operating physician, npi, teacher id, teacher name, teacher, nurse id, manager id, manager, manager name, supervisor, investigator id, =invid=, =invnam=, general practitioner, agent id, agent, driver id, judge, lawyer, attorney, arzt, arzt id, medecin, medico, enseignant, participant individual reference, individual reference
identifier: an account: account, account number, account id, acct, iban, bic, swift, routing number, bank account, credit card number, card number, card id, pan, cc num, cvv, wallet, wallet address, loan number, contract number, konto, kontonummer, kartennummer, vertragsnummer, compte, numero de compte, numero de carte, cuenta, numero de cuenta, numero de tarjeta, conta, numero da conta, conto, numero di conto
identifier: a device or an address of the network: ip, ip address, mac, mac address, imei, imsi, device id, device identifier, serial number, cookie, cookie id, session id, advertising id, idfa, gaid, fingerprint, browser fingerprint, user agent, url, uri, web address, website, homepage, seriennummer, adresse ip, direccion ip, indirizzo ip
identifier: biometrics or a picture: photo, photograph, image, picture, face, fingerprint hash, iris, voice, voiceprint, dna, genome, genotype, signature image, avatar, photo data, foto, bild, imagen, immagine
key: a number of a record: id, uuid, guid, key, row id, row number, raw row number, record id, index, =unnamed=, =rownames=, =row names=, =rowid=, =x=, =seq=, =ident=, sequence, sequence number, observation id, obs id, visit id, visit occurrence id, encounter id, encounter number, preceding visit occurrence id, visit detail id, condition occurrence id, drug exposure id, procedure occurrence id, measurement id, admission id, hadm id, stay id, icustay id, episode id, appointment id, order id, order number, order no, invoice, invoice number, invoice no, invoice id, transaction id, transaction number, transaction reference, trans num, payment id, claim id, claim number, purchase id, basket id, cart id, ticket, ticket number, ticket id, booking id, reservation id, call id, message id, test id, sample id, specimen id, event id, incident id, incident number, case number, report id, report number, prescription id, accession, accession number, encounter reference, shipment id, tracking number, enrolment id, enrollment id, application id, loan id, =aeseq=, =dmseq=, =sample=, =aespid=, =aerefid=, =aegrpid=, fallnummer, fall id, aufnahmenummer, bestellnummer, rechnungsnummer, auftragsnummer, belegnummer, laufende nummer, numero de sejour, numero de dossier, numero de commande, numero de facture, numero de pedido, numero de factura, id visita, id pedido, numero do pedido, numero fattura, numero ordine, id ricovero, household id, family id, location id, version id, meta version, resource id
quasi_identifier: date of birth: date of birth, birth date, dob, birthday, birthdate, birth datetime, birth year, year of birth, birth month, month of birth, day of birth, birthyr, birthmo, birthqtr, yob, born, year born, brthdtc, brthdt, birth quarter, geburtsdatum, geburtstag, geburtsjahr, geburtsmonat, geboren, gebdat, date de naissance, naissance, annee de naissance, mois de naissance, fecha de nacimiento, nacimiento, ano de nacimiento, fecha nacimiento, data de nascimento, nascimento, ano de nascimento, data di nascita, nascita, anno di nascita, year birth, =edad=
quasi_identifier: date of death: date of death, death date, death datetime, deathdate, deceased date, deceased date time, deceased datetime, =deceased=, =dthdtc=, =dthdt=, =dod=, year of death, todesdatum, sterbedatum, date de deces, fecha de defuncion, fecha de muerte, data de obito, data di morte, data decesso
quasi_identifier: age: age, age group, age band, age range, age years, age in years, age at admission, age class, agegrp, =agep=, =ageu=, agecat, age units, age at visit, age at diagnosis, patient age, customer age, subject age, alter, altersgruppe, altersklasse, lebensalter, age ans, tranche age, tranche d age, edad, grupo de edad, rango de edad, idade, faixa etaria, grupo etario, eta, fascia eta, fascia di eta, seniority age
quasi_identifier: sex or gender: sex, gender, gender concept id, gender source value, gender identity, sexp, birth sex, is male, is female, male, female, sexe, genre, geschlecht, genero, sexo, sesso, genere, anrede, salutation, civilite, =title=, title, =mf=, =f m=, pronouns
quasi_identifier: race or ethnicity: race, ethnicity, ethnic, ethnic group, ethnic origin, raced, hispan, hispand, hispanic, hispanic origin, hisp, latino, racial group, ancestry, ancestr, tribe, skin color, skin colour, native american, =rac1p=, =ethnic=, us core race, us core ethnicity, ethnie, origine ethnique, raza, etnia, grupo etnico, raca, cor ou raca, etnia, razza, ethnische herkunft, ethnie
quasi_identifier: nationality or origin: nationality, citizenship, citizen, citizen status, native country, birth country, country of birth, birthplace, place of birth, country of birth father, country of birth mother, country of birth self, bpl, bpld, mbpl, fbpl, yrimmig, yrsusa, immigration, immigrant, immigration year, year of immigration, nativity, country of origin, migration background, place birth, pob, =pobp=, =cit=, naturalization, foreign worker, foreigner, nationalitaet, staatsangehoerigkeit, staatsbuergerschaft, geburtsland, geburtsort, herkunft, herkunftsland, migrationshintergrund, nationalite, pays de naissance, lieu de naissance, nacionalidad, pais de nacimiento, lugar de nacimiento, nacionalidade, naturalidade, pais de nascimento, nazionalita, cittadinanza, luogo di nascita, paese di nascita
quasi_identifier: language: language, mother tongue, native language, spoken language, preferred language, communication language, language spoken, speakeng, =lanp=, english speaker, speaks english, sprache, muttersprache, langue, langue maternelle, idioma, lengua, lengua materna, lingua, lingua madre
quasi_identifier: marital status: marital, marital status, marital stat, marst, marriage, married, spouse, =mar=, partner, single, divorced, widowed, civil status, relationship status, family status, familienstand, verheiratet, zivilstand, situation familiale, etat civil, situation matrimoniale, estado civil, casado, stato civile, coniugato, marriage status
quasi_identifier: household or family: household, household size, household type, household members, famsize, family size, number of persons, num persons, persons in household, household summary, household and family stat, family members under 18, family members, family type, family structure, hh size, hhsize, hhtype, nfam, nchild, nchlt5, eldch, yngch, nsibs, ncouples, children, number of children, num children, kids, dependents, number of dependents, dependants, siblings, parents, relationship, relate, related, relationship to head, relationship to householder, =relp=, living arrangement, lives alone, live in this house 1 year ago, live in this house, multiple birth, twins, haushalt, haushaltsgroesse, anzahl kinder, kinder, geschwister, menage, taille du menage, enfants, nombre d enfants, nombre enfants, hogar, tamano del hogar, hijos, numero de hijos, agregado familiar, filhos, numero de filhos, nucleo familiare, figli, numero di figli, pupil guardian, guardian, famsup, pstatus, single parent, home ownership, housing, house ownership, ownershp, ownershpd, tenure, residence type, dwelling, wohnsituation, vivienda, abitazione, logement, dependent count, =sibsp=, =parch=
quasi_identifier: education: education, education num, educational num, education level, education years, years of education, educ, educd, educational attainment, highest education, highest degree, degree, =schl=, school attendance, schltype, gradeatt, gradeattd, enroll in edu inst last wk, enrolled in school, qualification, diploma, medu, fedu, mother education, father education, bildung, bildungsabschluss, schulabschluss, abschluss, schulbildung, niveau etude, niveau d etudes, niveau d instruction, diplome, educacion, nivel educativo, nivel de estudios, estudios, educacao, escolaridade, nivel de escolaridade, habilitacoes, istruzione, titolo di studio, livello di istruzione
quasi_identifier: occupation or employer: occupation, occupation code, occ, occ2010, occ1990, occsoc, ind, ind1990, indnaics, industry, industry code, industry recode, major industry code, major occupation code, detailed industry recode, detailed occupation recode, job, job title, job role, job family, job level, profession, employer, employer name, company, company name, class of worker, classwkr, classwkrd, workclass, work class, employment, employment type, employment status, employment stat, full or part time employment stat, empstat, empstatd, labforce, =cow=, =esr=, =occp=, =indp=, looking, department, dept, division, team, business unit, position, rank, grade level, pay grade, salary grade, seniority, years of service, years at company, tenure years, years employed, own business or self employed, self employed, num persons worked for employer, member of a labor union, union member, union, veteran, vetstat, vetstatd, military, military service, veterans benefits, fill inc questionnaire for veteran s admin, weeks worked in year, wkswork1, wkswork2, hours per week, uhrswork, hours worked, working hours, =wkhp=, mjob, fjob, mother job, father job, beruf, taetigkeit, arbeitgeber, branche, berufsgruppe, abteilung, stelle, beschaeftigung, wochenstunden, arbeitsstunden, metier, emploi, employeur, categorie socioprofessionnelle, csp, poste, service employeur, ocupacion, profesion, empleo, empleador, puesto, departamento empresa, profissao, ocupacao, emprego, empregador, cargo, occupazione, professione, lavoro, datore di lavoro, impiego, mansione, cost center, cost centre, kostenstelle, office, office location, work location, branch, branch id, branch code, filiale, agence, sucursal, agencia
quasi_identifier: religion: religion, religious affiliation, denomination, faith, church, konfession, religionszugehoerigkeit, confession, religione, religiao
quasi_identifier: a postal code: zip, zip code, zipcode, postal code, postcode, post code, pin code, pincode, postal, zip3, zip5, zcta, plz, postleitzahl, code postal, codigo postal, cep, cap, address postal code, location zip
quasi_identifier: a place: city, town, village, municipality, county, county fips, countyicp, countyfip, state, statefip, stateicp, state code, province, region, region code, district, country, country code, territory, area, neighborhood, neighbourhood, census tract, tract, block group, block, puma, =cpuma0010=, metro, metarea, metaread, metro area, msa, urban, rural, urban rural, locality, place, place of residence, residence, location, location name, zone, sector, beat, precinct, ward of residence, borough, parish, fips, geo, geography, address city, address state, address country, address district, address county, city name, country name, state name, region of previous residence, state of previous residence, migration, migration code, migration prev res in sunbelt, migration code change in msa, migration code change in reg, migration code move within reg, migrate1, migrate1d, migplac1, =st=, stadt, ort, wohnort, gemeinde, landkreis, kreis, bundesland, land, stadtteil, bezirk, ville, commune, departement, pays, quartier, ciudad, municipio, provincia, comunidad autonoma, pais, barrio, region residencia, localidad, cidade, concelho, distrito, estado, freguesia, bairro, regiao, citta, comune, regione, paese, quartiere, state of residence, country of residence, home town, hometown, origin city, destination, merchant city, store city, nuts, lsoa, msoa, canton, kanton, geography
quasi_identifier: coordinates: latitude, longitude, lat, lon, lng, long, lat long, coordinates, geo point, geolocation, gps, geohash, easting, northing, breitengrad, laengengrad, latitud, longitud, merch lat, merch long, =x coord=, =y coord=, latitudine, longitudine, coordenadas, position latitude, position longitude
quasi_identifier: body: height, body height, weight kg, body weight, bmi, body mass index, height cm, height in, weight lb, blood group, blood type, eye color, hair color, stature, groesse, koerpergroesse, gewicht, koerpergewicht, blutgruppe, taille, poids, groupe sanguin, altura, estatura, peso, grupo sanguineo, tipo sanguineo, altezza, gruppo sanguigno, =weight=
quasi_identifier: a facility or institution: hospital, hospital id, hospital name, hospital code, facility, facility id, facility name, clinic, clinic name, clinic id, care site id, care site, site id, siteid, site, center, centre, study site, service provider, service provider reference, managing organization, managing organization reference, organization, organisation, institution, school, school name, school id, school code, college, university, krankenhaus, klinik, schule, hopital, etablissement, etablissement scolaire, ecole, centro, centro de salud, escuela, colegio, escola, hospital de origem, ospedale, scuola, istituto, ward, station, store, store id, practice, practice id, campus, location reference, class room, classroom, homeroom, class group, school class, klasse, classe, clase, turma, grade year, year group, school year group, =form=, cohort, course, programme, program, major, course of study, field of study, studiengang, =grade=
quasi_identifier: when something happened: admission date, admit date, admittime, admission time, admitted, discharge date, dischtime, discharged, discharge time, date, datetime, day, month, year, hour, weekday, day of week, day of month, quarter, week, timestamp, event date, incident date, stop date, stop time, visit date, visit start date, visit end date, visit start datetime, visit end datetime, visit start, visit end, encounter date, period start, period end, start date, end date, start datetime, end datetime, start time, end time, =start=, =stop=, =time=, condition start date, condition end date, condition start datetime, condition end datetime, onset date, onset datetime, onset date time, recorded date, diagnosis date, procedure date, test date, sample date, collection date, appointment date, order date, order time, order datetime, purchase date, transaction date, transaction time, trans date, trans date trans time, invoice date, invoice datetime, payment date, delivery date, ship date, shipping date, booking date, hire date, hired, hired on, start of employment, employment date, termination date, exit date, leaving date, joining date, join date, joined, date joined, member since, customer since, opened, opening date, account opened, account open date, opened on, signup date, sign up date, registration date, registered, enrolment date, enrollment date, enrolled, enrolled on, graduation date, graduation year, accident date, arrest date, offence date, offense date, claim date, loss date, rfstdtc, rfendtc, rfxstdtc, rfxendtc, rficdtc, rfpendtc, dmdtc, aestdtc, aeendtc, aedtc, aestdy, aeendy, dmdy, visitdy, svstdtc, svendtc, study day, pan day, first visit, last visit, last purchase date, last login, last seen, first seen, last order date, aufnahmedatum, entlassungsdatum, datum, uhrzeit, tag, monat, jahr, eintrittsdatum, austrittsdatum, einstellungsdatum, bestelldatum, kaufdatum, besuchsdatum, date d admission, date admission, date de sortie, date entree, date d entree, date d embauche, date embauche, date de commande, jour, mois, annee, heure, date visite, fecha, fecha de ingreso, fecha de alta, fecha ingreso, fecha alta, fecha de contratacion, fecha de compra, fecha de pedido, dia, mes, ano, anio, hora, data, data de admissao, data de alta, data de entrada, data de internamento, data ricovero, data di ricovero, data di dimissione, data dimissione, data assunzione, data di assunzione, data ordine, giorno, mese, anno, ora, last donation, time of stop, datanum, survey year
sensitive: diagnosis or condition: diagnosis, diagnoses, diag, primary diagnosis, secondary diagnosis, admitting diagnosis, diagnosis code, diagnosis text, dx, dx code, principal diagnosis, disease, illness, condition, conditions, condition concept id, condition source value, condition source concept id, health condition, medical condition, comorbidity, comorbidities, icd, icd9, icd10, icd code, snomed, snomed code, symptom, symptoms, complaint, chief complaint, reason for visit, reason code, reason, cause of death, dthfl, stop reason, allergy, allergies, cancer, tumor, tumour, stage, diabetes, diabetic, diabetes pedigree, hypertension, asthma, hiv, depression, anxiety, mental health, pregnancy, pregnant, pregnancies, smoker, smoking, smoke, smoking status, tobacco, alcohol, drinking, drinker, drug use, substance, disability, disabled, diffrem, diffphys, diffmob, diffcare, diffsens, diffeye, diffhear, handicap, health, health status, overall health, adverse event, aeterm, aedecod, aellt, aehlt, aehlgt, aebodsys, aesoc, aecat, aesev, aeser, aerel, aeacn, aeout, aeongo, aecontrt, aesdth, aeshosp, aeslife, aesdisab, aescong, aesmie, aetoxgr, severity, seriousness, causality, krankheit, diagnose, hauptdiagnose, nebendiagnose, erkrankung, beschwerden, behinderung, raucher, schwanger, diagnostic, diagnostic principal, maladie, pathologie, handicap, fumeur, diagnostico, diagnostico principal, enfermedad, sintoma, sintomas, discapacidad, fumador, embarazo, doenca, diagnostico principal, deficiencia, diagnosi, diagnosi principale, malattia, patologia, disabilita, fumatore, hospitalized before, chronic, =aelltcd=, =aeptcd=, =aehltcd=, =aehlgtcd=, =aebdsycd=, =aesoccd=
sensitive: drug or treatment: drug, drugs, drug name, medication, medications, medicine, medication name, prescription, dose, dosage, daily dose, route, strength, therapy, treatment, treatment arm, treatment group, procedure, procedures, procedure code, cpt, hcpcs, drg, drg code, surgery, operation, vaccine, vaccination, vaccinated, chemo, chemotherapy, radiotherapy, insulin, metformin, repaglinide, nateglinide, chlorpropamide, glimepiride, acetohexamide, glipizide, glyburide, tolbutamide, pioglitazone, rosiglitazone, acarbose, miglitol, troglitazone, tolazamide, examide, citoglipton, aspirin, statin, antibiotic, antibiotics, diabetes med, diabetesmed, arm, armcd, actarm, actarmcd, armnrs, actarmud, medikament, wirkstoff, dosis, behandlung, medicament, traitement, posologie, medicamento, farmaco, tratamiento, dosis diaria, tratamento, farmaco, terapia, trattamento, dose giornaliera, number of medications, num medications, infusion, transfusion, anesthesia, ndc, atc, atc code
sensitive: a laboratory value or measurement: lab, lab result, laboratory, test result, result, results, result value, value as number, value as concept id, measurement, measurement value, observation value, value quantity, glucose, max glu serum, glu serum, hba1c, a1c, a1cresult, hemoglobin, haemoglobin, cholesterol, ldl, hdl, triglycerides, creatinine, blood pressure, systolic, diastolic, sbp, dbp, trestbps, heart rate, pulse, thalach, temperature, oxygen saturation, spo2, white blood cells, platelets, sodium, potassium, bilirubin, albumin, crp, viral load, cd4, ct result, ct value, psa, tsh, ecg, restecg, chol, fbs, oldpeak, exang, thal, fasting glucose, skin thickness, bloodpressure, reading, range low, range high, laborwert, messwert, ergebnis, blutdruck, blutzucker, cholesterin, resultat, tension arterielle, glycemie, valor, resultado, tension arterial, glucosa, colesterol, pressao arterial, glicemia, risultato, esito, pressione, pressione arteriosa, colesterolo, gleason, tumor size, apgar, birth weight, gestational age, number of lab procedures, num lab procedures, num procedures, number diagnoses, orderset, payor group, drive thru ind, demo group, rec ver tat, col rec tat
sensitive: how a stay or a case went: outcome, outcomes, discharge disposition, disposition, discharge disposition id, discharged to, discharge to source value, discharge to concept id, admission source, admission source id, admission type, admission type id, admitted from source value, admitted from concept id, length of stay, los, time in hospital, days in hospital, readmitted, readmission, readmission 30, mortality, died, death, dead, dth, survival, survived, survival time, vital status, target, label, class, churn, churned, attrition, default, defaulted, default payment next month, default payment, bad, response, responded, converted, event, status, case status, loan status, final status, arrest made, citation issued, warning issued, contraband found, contraband drugs, contraband weapons, frisk performed, search conducted, search person, search vehicle, search basis, search type, reason for stop, reason for search, violation, violation raw, offence, offense, crime, charge, conviction, convicted, sentence, priors count, prior, recidivism, two year recid, decile score, arrest, victim, weapon, injury, injuries, fault, visit concept id, visit type, visit type concept id, visit source value, visit source concept id, encounter class, class code, class display, encounter type, type code, type display, type text, service type, hospitalization, hospital service, medical specialty, specialty, number of visits, number outpatient, number emergency, number inpatient, number of admissions, visits, emergency visits, payer code, payer, insurance, insurance type, insurance plan, hcovany, hcovpriv, hinscaid, hinscare, hcovpub, health insurance, coverage, entlassungsart, aufnahmegrund, verweildauer, liegedauer, duree de sejour, duree sejour, mode de sortie, mode entree, motivo, motif, motif d admission, motivo de ingreso, dias de estancia, estancia, tipo de alta, motivo de internamento, durata degenza, giorni di degenza, motivo del ricovero, change, change of medication, credit risk, risk, fraud, is fraud, fraudulent, passed, promoted, suspended, retention, failures, completed study, complete, withdrawn, patient class, discharged to, krankenkasse, mutuelle, assurance, seguro, seguradora, assicurazione, versicherung, discharged to source value, discharged to concept id, =deceasedboolean=, deceased boolean, seller id, seller
sensitive: money: income, incomes, total income, inctot, ftotinc, hhincome, incwage, incss, incwelfr, incinvst, incretir, incsupp, incother, incearn, incbus00, income gt 50k, salary, salary class, base salary, gross salary, net salary, wage, wages, wage per hour, earnings, pay, gross pay, net pay, hourly rate, overtime, overtime pay, bonus, commission, stock option, benefits, pension, deduction, deductions, tax, taxes, tax paid, tax withheld, tax filer stat, filing status, capital gain, capital gains, capital loss, capital losses, dividends, dividends from stocks, interest, rent, rentgrs, mortgage, mortamt1, valueh, house value, property value, property, assets, wealth, net worth, balance, account balance, average balance, debt, loan, loans, loan amount, credit amount, credit limit, limit bal, credit score, fico, savings, savings account, checking account, checking status, credit history, existing credits, installment, instalment, installment rate, payment, payments, amount, amt, total, total amount, total price, price, unit price, cost, costs, fee, fees, fare, charges, total charges, monthly charges, bill, bill amt, pay amt, paid amount, claim amount, premium, revenue, sales, spend, spending, total spent, turnover, discount, refund, poverty, other debtors, guarantors, other parties, other payment plans, purpose, loan purpose, card type, card category, number of products, num products, products number, num of products, credit card, has credit card, debit card, active member, transactions count, einkommen, gehalt, lohn, bruttogehalt, nettogehalt, bruttolohn, nettolohn, betrag, summe, preis, kosten, saldo, kontostand, schulden, miete, umsatz, praemie, revenu, revenus, salaire, salaire brut, salaire net, montant, prix, cout, solde, loyer, dette, prime, impot, ingresos, ingreso, renta, salario, sueldo, sueldo bruto, monto, importe, precio, costo, coste, deuda, alquiler, renda, rendimento, ordenado, vencimento, montante, valor total, preco, custo, divida, saldo medio, reddito, stipendio, retribuzione, salario lordo, importo, prezzo, spesa, debito, affitto, ricavi, economic status
sensitive: performance or an answer: score, scores, test score, exam score, exam, mark, marks, final grade, grades, gpa, average grade, math score, reading score, writing score, =g1=, =g2=, =g3=, =gpa=, points, performance, performance rating, performance score, rating, ratings, satisfaction, job satisfaction, environment satisfaction, work life balance, opinion, attitude, answer, response text, question, item, survey, stress, happiness, happy, trust, agree, party, party id, vote, voted, vote intention, political views, polviews, partyid, religiosity, relig attend, sexual orientation, orientation, quality of life, absences, absence, sick days, sick leave, days absent, attendance, number of absences, behaviour, behavior, bulling, note, noten, durchschnittsnote, punkte, zufriedenheit, antwort, fehltage, fehlzeiten, krankheitstage, moyenne, notes scolaires, satisfaction client, nota, notas, calificacion, puntuacion, satisfaccion, respuesta, ausencias, faltas, classificacao, media, pontuacao, satisfacao, voto, voti, punteggio, soddisfazione, risposta, assenze, special needs, free lunch, free meals, lunch, scholarship, test preparation course, extra curricular, grade
sensitive: what somebody bought or did: product, product id, product name, product code, item id, sku, stock code, category, product category, brand, quantity, qty, units, description of product, merchant, merchant name, merchant id, merchant category, mcc, payment method, payment type, payment mode, shipping method, shipping type, coupon, coupon code, channel, device, device type, browser, operating system, os, referrer, campaign, page, page views, clicks, items, number of items, num items, order status, order amount, order total, delivery status, returned, review score, review, segment, customer segment, loyalty, loyalty points, loyalty tier, membership, membership type, subscription, plan type, contract, contract type, internet service, tariff, visits count, transaction type, transaction count, total trans ct, total trans amt, previous, poutcome, pdays, duration, call duration, contact duration, days since last, recency, frequency, hobbies, internet, activities, produkt, artikel, artikelnummer, menge, anzahl artikel, zahlungsart, zahlungsmethode, versandart, bestellstatus, produit, article, quantite, mode de paiement, moyen de paiement, statut commande, producto, articulo, cantidad, metodo de pago, forma de pago, estado del pedido, produto, artigo, quantidade, metodo de pagamento, prodotto, articolo, quantita, metodo di pagamento, modalita di pagamento, stato ordine, gutschein, kategorie, categorie, categoria, type of vehicle, vehicle type, vehicle make, vehicle model, vehicle color, vehicle year, car, telephone owned, own telephone
insensitive: a flag or a date of processing: created, created at, created on, creation date, updated, updated at, updated on, modified, last modified, last updated, meta last updated, load date, load time, etl date, ingested at, ingestion time, batch, batch id, file, file name, filename, source, source system, source file, data source, version, meta, meta profile, resource type, extract date, export date, imported at, is deleted, deleted, is active, active, valid, quality flag, flag, flags, imputed, imputation flag, record type, row type, language of form, =domain=, =studyid=, study id, study, trial id, study phase, =epoch=, =visit=, =visitnum=, =dmdtfl=, type concept id, condition type concept id, condition status concept id, condition status source value, clinical status, verification status, period type, currency, currency code, unit, units of measure, unit source value, unit concept id, time zone, timezone, gq, gqtype, =sample id=, =multyear=, =datanum=, ident use, identifier system, identifier use, identifier type, telecom system, telecom use, name use, address use, address type, system, erstellt am, geaendert am, quelle, waehrung, date de creation, date de mise a jour, devise, fecha de creacion, fecha de actualizacion, moneda, data de criacao, moeda, data creazione, data di aggiornamento, valuta, status system, testing, instrument
weight: a survey weight: survey weight, sampling weight, sample weight, person weight, household weight, instance weight, final weight, weighting, weights, fnlwgt, perwt, hhwt, asecwt, wtfinl, slwt, perwts, pwgtp, wgtp, pweight, wgt, wt, final wt, case weight, design weight, replicate weight, expansion factor, analysis weight, wtssall, wtmec, wtint, gewichtung, hochrechnungsfaktor, ponderation, poids de sondage, factor de expansion, ponderacion, fator de expansao, ponderacao, peso campionario, coefficiente di riporto, strata, stratum, cluster, =psu=, =repwtp=, repwt
withheld: free text: comment, comments, note text, notes, clinical notes, note, free text, text, remark, remarks, description, narrative, anamnesis, history text, memo, message, feedback, feedback text, review text, review comment, observations, additional information, special instructions, delivery instructions, div, text div, text status, bemerkung, bemerkungen, kommentar, freitext, anmerkung, anmerkungen, beschreibung, notiz, notizen, commentaire, commentaires, remarque, remarques, observation libre, comentario, comentarios, observaciones, descripcion, notas libres, observacoes, descricao, commento, commenti, osservazioni, descrizione, annotazioni
"""  # noqa: E501 - a line is a concept


class Concept(NamedTuple):
    """Concept of a column, such as a person's name, with the role that it proposes.

    Attributes:
        name: In words.
        role: What becomes of such a column.
    """

    name: str
    role: Role


def concept_names() -> Iterator[tuple[Concept, str, bool]]:
    """Yield each name of the concept table with its concept and whether it must match completely.

    A name that must match completely is never found inside longer names.
    """
    for line in CONCEPTS.strip().splitlines():
        role, name, names = line.split(": ", 2)
        if role not in get_args(Role):
            raise ValueError(f"no role: {role}")
        for one in map(str.strip, names.split(",")):
            yield Concept(name, cast(Role, role)), one.strip("="), one.startswith("=")


Words = tuple[str, ...]


WHOLE, ENDED, HELD, PARTED = 0.95, 0.9, 0.8, 0.7
"""How sure a name makes: the whole of it, all but words that say nothing, a part of it, and one that had to be cut into words."""
IGNORED_WORDS = word_set(
    "code codes cd coded value values source concept coding display recode detailed the of raw orig original std standard var "
    "column field col new old current curr cur primary main v num n my fake dummy masked anon synthetic d p a all other in at on "
    "for to by per us is has was der die das von de du des la le les el los del do da dos di della il lo subject person patient "
    "customer client employee member user student pupil participant respondent individual respondents patients persons record row "
    "data info c s b h gr grp group class cat category major minor"
)
"""Words that say little of what a column holds: whose it is, or how it is written."""
NUMBERS = word_set("id ids no nr number num key uuid guid identifier nbr nummer numero numer codigo reference ref index")
COUNTS = word_set("count counts total sum avg average mean median min max share rate ratio percent pct anzahl nombre cantidad")
MOMENTS = word_set("date dt dtc time datetime timestamp day at datum fecha data ts start end begin since until")
HEADS = word_set("of de du des del von di da do dos della")
FEWEST_LETTERS = 3
PERSONS, EVENTS = (NUMBERED["person"] | {"holder"}, NUMBERED["event"])
WEAK = word_set(
    "source system version meta file unit units testing flag flags active valid batch currency study time total page reading items "
    "text note notes mark marks response label target class event events change risk form area period index result results valor "
    "value date day month year hour start stop state land ort card cards contract contact mobile team position rank office major "
    "title single partner parents male female bad complete default status stage reason route dose points item question survey party "
    "device channel cell image picture building line via number id key name nom nome nombre score category product service cost "
    "rate"
)
"""Words that decide only where no other one of a name does."""
PROCESSED = word_set("created updated modified loaded load etl ingested ingestion imported import exported extract inserted changed")


class NameReading(NamedTuple):
    """Concept that a column's name suggests, with its confidence.

    Attributes:
        concept: What the column may be.
        confidence: From 0 to 1.
    """

    concept: Concept
    confidence: float


def _folded(name: str) -> str:
    """Decompose the accents of a name and write umlauts as two letters."""
    return unicodedata.normalize("NFKD", name.replace("ß", "ss").replace("ä", "ae").replace("ö", "oe").replace("ü", "ue"))


def name_words(name: str) -> Words:
    """Split a column's name into words, in lower case and without accents; digits are dropped."""
    plain = "".join(letter for letter in _folded(name) if not unicodedata.combining(letter))
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", plain)
    return tuple(word for word in re.split(r"[^a-z]+", parted.lower()) if word)


def _squashed(name: str) -> str:
    """Return a name in lower case without accents, spaces and punctuation."""
    return re.sub(r"[^a-z0-9]", "", _folded(name).lower())


class _Table(NamedTuple):
    """Lookup tables of concept names: complete names, exact names, word sequences and known words."""

    whole: dict[str, Concept]
    exact: frozenset[str]
    words: dict[Words, Concept]
    known: frozenset[str]


@cache
def _table() -> _Table:
    """Build the lookup tables of concept names."""
    whole: dict[str, Concept] = {}
    exact: set[str] = set()
    held: dict[Words, Concept] = {}
    for concept, name, only_whole in concept_names():
        # The first line that has a name keeps it: lines are in the order of what is withheld.
        whole.setdefault(_squashed(name), concept)
        if only_whole:
            exact.add(_squashed(name))
        else:
            held.setdefault(name_words(name), concept)
            whole.setdefault("".join(name_words(name)), concept)
    vocabulary = {word for words in held for word in words} | IGNORED_WORDS | NUMBERS | COUNTS | MOMENTS | PERSONS | EVENTS
    return _Table(whole, frozenset(exact), held, frozenset(word for word in vocabulary if len(word) >= FEWEST_LETTERS))


def concept_of(name: str) -> NameReading | None:
    """Return the concept that a column's name suggests; None if the table has no match."""
    table, words = _table(), name_words(name)
    squashed = _squashed(name)
    for text in (squashed, squashed.rstrip("0123456789"), "".join(words)):
        # A short name with a number behind it is another name.
        if text in table.whole and (text == squashed or text not in table.exact):
            return NameReading(table.whole[text], WHOLE)
    if not words:
        return None
    parted = tuple(part for word in words for part in _parts(word))
    sure = HELD if parted == words else PARTED
    ruled = _by_rule(parted)
    if ruled is not None:
        return NameReading(ruled, sure)
    short = tuple(word for word in parted if word not in IGNORED_WORDS)
    for some in (_without_ends(parted), short):
        if (found := table.whole.get("".join(some))) and "".join(some) not in table.exact:
            return NameReading(found, ENDED if parted == words else PARTED)
    found = _longest(parted)
    return None if found is None else NameReading(found, sure)


def _without_ends(words: Words) -> Words:
    """Remove words that say little from both ends of a name."""
    first, after = 0, len(words)
    while after - first > 1 and words[after - 1] in IGNORED_WORDS:
        after -= 1
    while after - first > 1 and words[first] in IGNORED_WORDS:
        first += 1
    return words[first:after]


def _longest(words: Words) -> Concept | None:
    """Return the concept of the longest table name among the words of a column's name.

    Of equally long names one before a word such as `of` is taken, else the one nearest to the end. Single words that say little come last.
    """
    table = _table()
    ends = [place for place, word in enumerate(words) if word in HEADS]
    best: tuple[tuple[int, int, int, int], Concept] | None = None
    for first in range(len(words)):
        for after in range(len(words), first, -1):
            concept = table.words.get(words[first:after])
            if concept is None or (after - first == 1 and len(words[first]) < FEWEST_LETTERS):
                continue
            strong = int(after - first > 1 or words[first] not in WEAK)
            rank = (strong, after - first, int(bool(ends) and after <= ends[0]), after)
            if best is None or rank > best[0]:
                best = rank, concept
            break
    return best[1] if best else None


def _by_rule(words: Words) -> Concept | None:
    """Return the concept of words that follow a general rule: numbers, counts or timestamps.

    Numbers are those of persons or of events.
    """
    last, before = words[-1], set(words[:-1])
    if len(words) > 1 and last in NUMBERS:
        if words in _table().words:
            return None
        whose = [word for word in words[:-1] if word.removesuffix("s") in PERSONS | EVENTS]
        if whose:
            person = whose[-1].removesuffix("s") in PERSONS
            return Concept("a person's number", "identifier") if person else Concept("a number of a record", "key")
    if len(words) > 1 and last in {"name", "label"} and words not in _table().words:
        rest = _longest(words[:-1])
        if rest is not None and rest.role not in {"identifier", "key"}:
            return rest
    if len(words) > 1 and last in MOMENTS and before & PROCESSED:
        return Concept("a date of processing", "insensitive")
    if len(words) > 1 and last in MOMENTS and words not in _table().words and not before & {"birth", "death", "deceased", "born"}:
        rest = _longest(words[:-1])
        if rest is None or rest.role in {"sensitive", "key", "quasi_identifier"}:
            return Concept("when something happened", "quasi_identifier")
    return None


@cache
def _parts(word: str) -> Words:
    """Split a compound word into the fewest known words; unchanged if it is known or cannot be split."""
    known = _table().known
    if word in known or len(word) < 2 * FEWEST_LETTERS:
        return (word,)
    best: list[Words | None] = [(), *([None] * len(word))]
    for end in range(1, len(word) + 1):
        for start in range(max(end - 20, 0), end):
            before = best[start]
            if before is not None and word[start:end] in known and (best[end] is None or len(before) + 1 < len(best[end] or ())):
                best[end] = (*before, word[start:end])
    return best[-1] or (word,)
