"""What all stages have in common, and what index and value codecs promise: the checks over the registry."""

import pytest

from conformance.index_checks import INDEX_CHECKS
from conformance.stage_checks import STAGE_CHECKS
from conformance.subjects import INDEX_SUBJECTS, MEMORY_SUBJECTS, SPARSIFIER_SUBJECTS, VALUE_SUBJECTS
from conformance.value_checks import VALUE_CHECKS
from hvd_deepreduce.registry import INDEX_CODECS, MEMORIES, SPARSIFIERS, VALUE_CODECS


def checks(collected):
    return pytest.mark.parametrize("check", collected, ids=lambda check: check.__name__)


@checks(STAGE_CHECKS)
@pytest.mark.parametrize("stage", [*SPARSIFIER_SUBJECTS, *INDEX_SUBJECTS, *VALUE_SUBJECTS, *MEMORY_SUBJECTS])
def test_stage(check, stage):
    check(stage)


@checks(INDEX_CHECKS)
@pytest.mark.parametrize("codec", INDEX_SUBJECTS)
def test_index_codec(check, codec):
    check(codec)


@checks(VALUE_CHECKS)
@pytest.mark.parametrize("codec", VALUE_SUBJECTS)
def test_value_codec(check, codec):
    check(codec)


def test_none_is_forgotten():
    registered = {cls for table in (SPARSIFIERS, INDEX_CODECS, VALUE_CODECS, MEMORIES) for cls in table.values()}
    subjects = [*SPARSIFIER_SUBJECTS, *INDEX_SUBJECTS, *VALUE_SUBJECTS, *MEMORY_SUBJECTS]
    assert {type(subject.values[0]) for subject in subjects} == registered


@pytest.mark.parametrize("table", [INDEX_CODECS, VALUE_CODECS], ids=["index", "value"])
def test_wire_ids_are_unique(table):
    forms = [form for cls in table.values() for form in (cls, cls().ordered) if form is not None]
    ids = [wire_id for form in forms for wire_id in getattr(form, "wire_ids", ()) or (form.wire_id,)]
    assert len(set(ids)) == len(ids)
    assert all(1 <= wire_id < 128 for wire_id in ids), "an id of more than one byte"
