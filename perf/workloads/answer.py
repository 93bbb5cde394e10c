"""What an operation's answer was worth."""

from enum import StrEnum


class Answer(StrEnum):
    """What an operation's answer was worth; each answered operation counts as exactly one."""

    COMPLETED = "completed"
    NOT_FOUND = "not_found"
    WRONG_DATA = "wrong_data"
