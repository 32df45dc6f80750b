"""The paths of Connect's REST API that restart connectors and tasks, pause, stop and resume connectors.

In: a `Cluster`. Out: routes.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from connector.http import Answer, Handler, Refused, Request, Route
from connector.rest.bodies import answer, nothing
from connector.rest.cluster import Cluster
from connector.rest.parts import asked, flag, found_view, task_number


def restart_routes(cluster: Cluster) -> list[Route]:
    async def restart(name: str, itself: bool, tasks: list[int]) -> None:
        await asked(partial(cluster.restart, name, itself=itself, tasks=tasks))

    async def connector(request: Request) -> Answer:
        name = request.parts["connector"]
        view = found_view(cluster, name, f"Unknown connector: {name}")
        with_tasks, only_failed = flag(request, "includeTasks"), flag(request, "onlyFailed")
        itself = not only_failed or view.instance.state == "FAILED"
        tasks = [
            number
            for number, task in enumerate(view.tasks)
            if with_tasks and (not only_failed or task.state == "FAILED")
        ]
        await restart(name, itself, tasks)
        if not with_tasks and not only_failed:
            # The only form that there was before 3.0.
            return nothing(204)
        return answer(view.restarted(itself, tasks).status(), 202)

    async def task(request: Request) -> Answer:
        name, number = request.parts["connector"], task_number(request)
        view = found_view(cluster, name, f"Unknown connector: {name}")
        if not 0 <= number < len(view.tasks):
            raise Refused(404, f"Unknown task: {name}-{number}")
        await restart(name, False, [number])
        return nothing(204)

    def directed(target: Literal["RUNNING", "PAUSED", "STOPPED"], status: int) -> Handler:
        async def handler(request: Request) -> Answer:
            name = request.parts["connector"]
            found_view(cluster, name, f"Unknown connector {name}")
            await asked(partial(cluster.direct, name, target))
            return nothing(status)

        return handler

    path = "/connectors/{connector}"
    return [
        Route("PUT", f"{path}/pause", directed("PAUSED", 202), writes=True),
        Route("PUT", f"{path}/resume", directed("RUNNING", 202), writes=True),
        Route("PUT", f"{path}/stop", directed("STOPPED", 204), writes=True),
        Route("POST", f"{path}/restart", connector, writes=True),
        Route("POST", f"{path}/tasks/{{task}}/restart", task, writes=True),
    ]
