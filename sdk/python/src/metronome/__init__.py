"""What training code has to do with Metronome: it reports how far it is, waits for its turn on shared links, saves when
it is asked to leave, and is told when its size changes. Without an agent nothing of it has any effect.

    import metronome

    with metronome.training(total_iterations=1000) as job:
        for step in job.iterations():
            job.report(loss=train(step))
"""

from .environment import Environment
from .job import LEFT, Job, training
from .size import Size

__all__ = ["LEFT", "Environment", "Job", "Size", "training"]
__version__ = "0.1.0"
