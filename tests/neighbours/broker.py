"""A broker of Kafka on loopback, without containers: one process that is its own controller."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

#: What is fetched from Maven Central, once, into the virtual environment.
ARTIFACT = "org.apache.kafka:kafka_2.13:4.4.0"
#: Seconds that a broker may take to answer.
_LIMIT = 60

_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>
  </dependency></dependencies>
</project>
"""

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={logs}
num.partitions={partitions}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def jars() -> Path:
    """Return the folder with the broker's jars; fetch them if they are not there.

    Raises
    ------
    RuntimeError
        If there is no Maven, or it cannot fetch them.
    """
    folder = Path(sys.prefix, "kafka")
    if folder.exists():
        return folder
    if shutil.which("mvn") is None:
        raise RuntimeError(f"Maven fetches {ARTIFACT}: install it (apt-get install maven)")
    scratch = folder.with_suffix(".new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    (scratch / "pom.xml").write_text(_POM.format(*ARTIFACT.split(":")))
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Maven cannot fetch {ARTIFACT}: {done.stdout[-500:]}")
    (scratch / "jars").rename(folder)
    shutil.rmtree(scratch)
    return folder


class Broker:
    """A broker, started and ended by its process id.

    Parameters
    ----------
    folder : pathlib.Path
        For its records and its log.
    partitions : int
        Of a topic that is made as somebody writes to it.
    """

    def __init__(self, folder: Path, partitions: int = 2) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._port, controller = _free_port(), _free_port()
        self._process: psutil.Popen | None = None
        values = {
            "port": self._port,
            "controller": controller,
            "logs": folder / "records",
            "partitions": partitions,
        }
        self._properties = folder / "server.properties"
        self._properties.write_text(_PROPERTIES.format(**values))
        cluster = "4L6g3nShT-eMCtK--X86sw"
        self._java("kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c").wait(
            _LIMIT
        )

    @property
    def servers(self) -> str:
        """What clients are told."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> Broker:
        """Start it, and wait until it answers."""
        self._process = self._java("kafka.Kafka")
        end = time.monotonic() + _LIMIT
        while time.monotonic() < end:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", self._port)) == 0:
                    return self
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError((self._folder / "log").read_text()[-2_000:])

    def stop(self, *, kill: bool = False) -> None:
        """End it, in good order or not."""
        if self._process is not None:
            (self._process.kill if kill else self._process.terminate)()
            self._process.wait(_LIMIT)
            self._process = None

    def _java(self, main: str, *arguments: str) -> psutil.Popen:
        command = ["java", "-Xmx512m", "-cp", f"{jars()}/*", main, *arguments]
        with (self._folder / "log").open("ab") as log:
            return psutil.Popen([*command, str(self._properties)], stdout=log, stderr=log)


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port
