"""A conf/ as the archives of Cassandra have it: its own settings, and JVM options by version of Java.

Of what the project's archives document, as much as a start needs; the exports and opens that Cassandra
needs of the JDK are those that Knickpoint gives where there is no conf/.
"""

from importlib.resources import files
from pathlib import Path

SETTINGS = """\
cluster_name: 'Test Cluster'
num_tokens: 16
allocate_tokens_for_local_replication_factor: 3
authenticator: AllowAllAuthenticator
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period: 10000ms
concurrent_reads: 32
concurrent_writes: {concurrent_writes}
listen_address: localhost
rpc_address: localhost
endpoint_snitch: SimpleSnitch
auto_snapshot: true
"""
SERVER = """\
###########################################################################
# of every Java
-ea
-Xss{stack}
-XX:+AlwaysPreTouch
  -XX:+NotTakenSinceItIsIndented
-Djava.net.preferIPv4Stack=true
"""
JAVA_17 = """\
{collector}
-XX:MaxGCPauseMillis={pause_ms}
# -XX:ParallelGCThreads=16
-Djdk.attach.allowAttachSelf=true
-Dio.netty.tryReflectionSetAccessible=true
"""


def write_conf(
    release: Path,
    *,
    stack: str = "256k",
    collector: str = "-XX:+UseG1GC",
    pause_ms: int = 300,
    concurrent_writes: int = 32,
) -> None:
    """Write the conf/ of an unpacked archive; `collector` are lines of options."""
    conf = release / "conf"
    conf.mkdir(parents=True)
    (conf / "cassandra.yaml").write_text(SETTINGS.format(concurrent_writes=concurrent_writes))
    (conf / "jvm-server.options").write_text(SERVER.format(stack=stack))
    needed = files("perf.systems.cassandra").joinpath("jvm.options").read_text()
    opened = "".join(f"{line}\n" for line in needed.splitlines() if line.startswith("--add-"))
    java_17 = JAVA_17.format(collector=collector, pause_ms=pause_ms)
    (conf / "jvm17-server.options").write_text(java_17 + opened)
    (conf / "jvm11-server.options").write_text("-XX:+UseConcMarkSweepGC\n")
