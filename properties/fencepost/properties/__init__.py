"""The claims about the protocol, their witnesses and the refusal codes."""
