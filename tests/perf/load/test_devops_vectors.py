"""What the native engine is compared with is what the Python engine gives."""

from devops_vectors import PATH, make_vectors, write_vectors


def test_the_vectors_of_the_devops_workload_are_those_of_the_python_engine() -> None:
    assert PATH.read_text() == write_vectors(make_vectors())
