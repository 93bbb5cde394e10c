import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from analysis.commands import detect, judge_history
from analysis.verdict import Outcome
from perf.errors import ConfigError, HistoryError
from perf.history import bundle
from perf.history.store import append_all
from perf.model import Sample, Trial, TrialId
from perf.places import Places

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
