"""Validation rules of python-stdnum by name.

The module is imported only where a column may hold numbers of people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stdnum import iban, luhn
from stdnum.at import vnr as at_vnr
from stdnum.au import tfn as au_tfn
from stdnum.be import nn as be_nn
from stdnum.br import cpf as br_cpf
from stdnum.ca import bc_phn as ca_bc_phn
from stdnum.ca import sin as ca_sin
from stdnum.ch import ssn as ch_ssn
from stdnum.cn import ric as cn_ric
from stdnum.cz import rc as cz_rc
from stdnum.de import idnr as de_idnr
from stdnum.dk import cpr as dk_cpr
from stdnum.es import ccc as es_ccc
from stdnum.es import nif as es_nif
from stdnum.fi import hetu as fi_hetu
from stdnum.fr import nif as fr_nif
from stdnum.fr import nir as fr_nir
from stdnum.gb import nhs as gb_nhs
from stdnum.ie import pps as ie_pps
from stdnum.in_ import aadhaar as in_aadhaar
from stdnum.in_ import pan as in_pan
from stdnum.it import codicefiscale as it_codicefiscale
from stdnum.kr import rrn as kr_rrn
from stdnum.mx import curp as mx_curp
from stdnum.nl import bsn as nl_bsn
from stdnum.no import fodselsnummer as no_fodselsnummer
from stdnum.no import kontonr as no_kontonr
from stdnum.nz import bankaccount as nz_bankaccount
from stdnum.pl import pesel as pl_pesel
from stdnum.ro import cnp as ro_cnp
from stdnum.se import personnummer as se_personnummer
from stdnum.tr import tckimlik as tr_tckimlik
from stdnum.us import itin as us_itin
from stdnum.us import ssn as us_ssn
from stdnum.za import idnr as za_idnr

RULES: Mapping[str, Callable[[str], bool]] = {
    "luhn": luhn.is_valid,
    "iban": iban.is_valid,
    "es.ccc": es_ccc.is_valid,
    "nz.bankaccount": nz_bankaccount.is_valid,
    "no.kontonr": no_kontonr.is_valid,
    "us.ssn": us_ssn.is_valid,
    "ca.sin": ca_sin.is_valid,
    "fr.nir": fr_nir.is_valid,
    "ch.ssn": ch_ssn.is_valid,
    "at.vnr": at_vnr.is_valid,
    "be.nn": be_nn.is_valid,
    "it.codicefiscale": it_codicefiscale.is_valid,
    "pl.pesel": pl_pesel.is_valid,
    "cz.rc": cz_rc.is_valid,
    "se.personnummer": se_personnummer.is_valid,
    "no.fodselsnummer": no_fodselsnummer.is_valid,
    "dk.cpr": dk_cpr.is_valid,
    "fi.hetu": fi_hetu.is_valid,
    "nl.bsn": nl_bsn.is_valid,
    "kr.rrn": kr_rrn.is_valid,
    "in_.aadhaar": in_aadhaar.is_valid,
    "cn.ric": cn_ric.is_valid,
    "za.idnr": za_idnr.is_valid,
    "ro.cnp": ro_cnp.is_valid,
    "mx.curp": mx_curp.is_valid,
    "de.idnr": de_idnr.is_valid,
    "br.cpf": br_cpf.is_valid,
    "es.nif": es_nif.is_valid,
    "fr.nif": fr_nif.is_valid,
    "ie.pps": ie_pps.is_valid,
    "au.tfn": au_tfn.is_valid,
    "in_.pan": in_pan.is_valid,
    "tr.tckimlik": tr_tckimlik.is_valid,
    "us.itin": us_itin.is_valid,
    "gb.nhs": gb_nhs.is_valid,
    "ca.bc_phn": ca_bc_phn.is_valid,
}
