"""Check the claims against a real implementation: adapters, schedules, faults, histories."""
