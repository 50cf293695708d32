"""A workflow that asks a model what to do: directly, and as an activity. The model changes its mind."""

from fencepost.reference import Activity, Differs, MemoryHistory, ReplayedWorkflow, Runtime, run_workflow

ANSWERS = iter(["refund", "discount", "refund", "discount"])
"""What the model says to the same question: something else each time."""

DONE: list[str] = []
"""What took place."""


def model(question: str) -> str:
    assert question
    return next(ANSWERS)


def act(what: str, cents: int) -> str:
    DONE.append(what)
    return f"{what} of {cents}"


OUTSIDE = {
    "activities": {"ask": Activity(model), "act": Activity(act)},
    "clock_ms": lambda: 0,
    "random": lambda: 0.5,
    "new_id": lambda: "id-1",
}


def asks_directly(runtime: Runtime, cents: int) -> str:
    return runtime.call("act", what=model("what does the customer want?"), cents=cents)


def asks_as_an_activity(runtime: Runtime, cents: int) -> str:
    answer = runtime.call("ask", question="what does the customer want?")
    return runtime.call("act", what=answer, cents=cents)


for function in (asks_directly, asks_as_an_activity):
    DONE.clear()
    history = MemoryHistory("order-42")
    workflow = ReplayedWorkflow("complaint", function, "v1")
    run_workflow(workflow, history, {"cents": 500}, **OUTSIDE)
    again = run_workflow(workflow, history, **OUTSIDE)  # another worker, over the same history
    print(f"{function.__name__}: done {DONE}; replayed:")
    print(again.ended.difference if isinstance(again.ended, Differs) else again.ended)
