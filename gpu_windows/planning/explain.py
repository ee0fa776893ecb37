"""The human-readable description of a plan."""

from __future__ import annotations

from gpu_windows.planning.plan import Plan


def explain(plan: Plan) -> str:
    """Describe a plan: what is computed, how, on which device and why."""
    lines = [
        *(f"{name:<10}{text}" for name, text in plan.query.describe().items()),
        f"strategy  {plan.strategy.value}",
        *(f"          - {reason}" for reason in plan.reasons),
        f"device    {_device(plan)}",
        *(f"warning   {warning}" for warning in plan.warnings),
    ]
    return "\n".join(lines)


def _device(plan: Plan) -> str:
    if not plan.calls_kernels:
        return "cpu: no kernel of a device runs it"
    return f"{plan.query.options.device}, chosen where the work is done"
