"""What the HTTP port of `run` serves: `/live`, `/ready`, `/health`, `/status`, `/metrics`, and what others add.

In: a running service. Out: routes for an `HttpServer`, and that server for a configuration.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Protocol

from connector.config import Configuration, KeystoreError
from connector.errors import CdcError
from connector.http import Access, Answer, HttpServer, Request, Route, answer_json, is_loopback
from connector.worker.metrics import metrics_page
from connector.worker.state import State
from connector.worker.status_document import Health, Liveness, Readiness, RunningWorker, ServiceStatus

log = logging.getLogger(__name__)

SILENT_SECONDS = 10.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Service(Protocol):
    """The supervisor, as those see it who ask how it is."""

    def status(self) -> ServiceStatus: ...

    def liveness(self) -> Liveness: ...

    def excused(self) -> Collection[int]: ...


def status_server(
    configuration: Configuration, service: Service, host: str, port: int, others: Sequence[Route] = ()
) -> HttpServer:
    """The server, not yet started; says so if anybody may read it. ``others``: what it serves beside this."""
    http = configuration.worker.http
    try:
        access, refused = Access(http.token, http.tls()), http.why_refused()
    except KeystoreError as error:
        raise CdcError(f"TLS of the HTTP port: {error}") from None
    server = HttpServer(host, port, [*status_routes(service), *others], access)
    if refused:
        log.warning("the certificate of %s %s: clients that check it will not connect", server.url, refused)
    if not is_loopback(host):
        warn_of_open_port(server)
    return server


def warn_of_open_port(server: HttpServer) -> None:
    access = server.access
    if not access.token and not access.tls:
        log.warning(
            "everybody who reaches %s can read status and metrics, unencrypted: set rest.bearer.token, and "
            "listeners.https.ssl.keystore.location for TLS, or listen on 127.0.0.1",
            server.url,
        )
    elif not access.tls:
        log.info(
            "the bearer token is sent to %s unencrypted: listeners.https.ssl.keystore.location is not set", server.url
        )
    elif not access.token and not access.asks_for_certificates:
        log.info("everybody who reaches %s can read status and metrics: rest.bearer.token is not set", server.url)


def status_routes(service: Service) -> list[Route]:
    """Probes are open: kubelets have no token. Without one they learn yes or no, and nothing else."""

    def live(request: Request) -> Answer:
        found = service.liveness()
        document = found.document() if request.authorized else {"alive": found.alive}
        return answer_json(document, 200 if found.alive else 503)

    def ready(request: Request) -> Answer:
        found = readiness_of(service.status(), service.excused())
        document = found.document() if request.authorized else {"ready": found.ready}
        return answer_json(document, 200 if found.ready else 503)

    def health(request: Request) -> Answer:
        status = service.status()
        # 503 is what orchestrators understand: running, but somebody should look.
        return answer_json(health_of(status).document(), 200 if status.state is State.RUNNING else 503)

    def status(request: Request) -> Answer:
        return answer_json(service.status().document())

    def metrics(request: Request) -> Answer:
        # The page's values are filtered one by one: its names must stay what they are.
        return Answer(200, METRICS_TYPE, metrics_page(service.status))

    return [
        Route("GET", "/live", live, open=True),
        Route("GET", "/ready", ready, open=True),
        Route("GET", "/health", health),
        Route("GET", "/status", status),
        Route("GET", "/metrics", metrics),
    ]


def readiness_of(status: ServiceStatus, excused: Collection[int] = ()) -> Readiness:
    """Whether every worker has slots, or is where it gets them as soon as there are some; but for the ``excused``.

    Unlike `/health` this stays true while tables have failed or ScyllaDB is away: no other process would do better.
    """
    # Those that were asked not to run have nothing to be ready for.
    held = {name for name, connector in status.connectors.items() if connector.target != "RUNNING"}
    workers = [worker for worker in status.workers if worker.connector not in held and worker.index not in excused]
    wanted = status.workers_wanted - len(excused)
    missing = wanted - len(workers)
    reasons = []
    if status.waiting_for and not status.workers and (missing > 0 or not status.connectors):
        reasons.append(status.waiting_for)
    elif missing > 0:
        reasons.append(f"{missing} of {wanted} workers have not reported yet")
    reasons += [f"worker {each.index}: {why}" for each in workers if (why := _not_ready(each))]
    return Readiness(ready=not reasons, waiting_for="; ".join(reasons) or None)


def _not_ready(worker: RunningWorker) -> str | None:
    if worker.last_report_age_seconds >= SILENT_SECONDS:
        return f"no report for {worker.last_report_age_seconds:.0f} s"
    if worker.slots or worker.in_group:
        return None
    return worker.waiting_for or "not in the consumer group"


def health_of(status: ServiceStatus) -> Health:
    """What is worth an operator's look."""
    late: dict[str, Counter[str]] = {}
    expired: Counter[str] = Counter()
    for worker in status.workers:
        for name, table in worker.tables.items():
            expired.update({name: table.expired} if table.expired else {})
            if table.late_changes:
                late.setdefault(name, Counter()).update(table.late_changes)
    return Health(
        state=status.state,
        waiting_for=status.waiting_for,
        failing=(*status.failures(), *status.failing),
        late_changes={**late},
        expired={**expired},
    )
