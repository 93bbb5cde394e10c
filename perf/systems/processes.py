"""The verbs that all systems share whose server is one process in its node's directory."""

import signal

from perf.hosts.remote import remove_tree, running_pid, send_signal
from perf.systems.contract import Node


class ServerProcess:
    """A system with one server process on each node, known by the node's pid file."""

    def is_running(self, node: Node) -> bool:
        """Say whether the node's server process lives."""
        return running_pid(node.remote, node.pid_file) is not None

    def stop(self, node: Node, *, force: bool) -> None:
        """Send SIGTERM, which asks for a clean shutdown, or SIGKILL."""
        send_signal(node.remote, node.pid_file, signal.SIGKILL if force else signal.SIGTERM)

    def wipe(self, node: Node) -> None:
        """Remove the node's directory; what it links to stays."""
        remove_tree(node.remote, node.work_dir)
