"""What a session of the devops workload promises."""

from perf.promises.promise import NotAsked, Promise, require
from perf.records import ASKED_OF, Devops
from perf.sessions import DevopsSession

RECORDS = Devops(kind="devops", hosts=8, span_s=3600)


def _create_schema_again(session: DevopsSession) -> str:
    before = session.stored()
    session.create_schema(RECORDS)
    after = session.stored()
    require(after == before, f"{before.rows} rows before, {after.rows} after")
    return f"{after.rows} rows, as before"


def _say_what_can_be_asked(session: DevopsSession) -> str:
    asked = [one.value for one in ASKED_OF["devops"] if "groupby" in one and session.can_ask(one)]
    if not asked:
        raise NotAsked("this system can be asked none of the queries")
    return ", ".join(asked)


PROMISES: tuple[Promise[DevopsSession], ...] = (
    Promise("the schema may be created again, and costs no data", _create_schema_again),
    Promise("it says which queries it can be asked", _say_what_can_be_asked, reads_back=False),
)
