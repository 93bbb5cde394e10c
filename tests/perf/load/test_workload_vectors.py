"""What the native engine is compared with is what the Python engine gives."""

from types import ModuleType

import put_get_vectors
import pytest
import sensor_vectors
import statement_vectors
import ycsb_vectors
from vector_files import write_vectors

KINDS = [sensor_vectors, put_get_vectors, ycsb_vectors, statement_vectors]


@pytest.mark.parametrize("kind", KINDS)
def test_the_vectors_of_a_workload_are_those_of_the_python_engine(kind: ModuleType) -> None:
    assert kind.PATH.read_text() == write_vectors(kind.make_vectors())
