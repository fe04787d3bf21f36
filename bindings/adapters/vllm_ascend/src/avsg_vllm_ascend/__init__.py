"""vLLM-Ascend's sparse KV offload plans its misses with AVSG."""

from .onload import TopkOnload
from .planner import ResidentPlanner
from .plugin import PlannerModule, install, register

__all__ = ["PlannerModule", "ResidentPlanner", "TopkOnload", "install", "register"]
