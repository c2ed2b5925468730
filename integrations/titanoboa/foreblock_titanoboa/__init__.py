"""titanoboa on a chain of foreblock in the process: `boa.set_env(Env())`."""

from foreblock_titanoboa.env import Env

__all__ = ["Env"]
