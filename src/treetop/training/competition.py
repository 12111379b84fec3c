"""The competition: n-grams that are left open are decided by trials on the user's own data.

The features of a portfolio are tried on a part of the labels (see `treetop.training.trials`) and scored
on held-out documents. Then features are chosen for one tree after the other, so that the mean of their
scores, as the final model computes it, is best. The rules of `treetop.settings.auto` keep their choice
unless another is significantly better. Costs stay as the rules say: which of them is best on a part of
the data is not which is best on all (see docs/defaults.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from treetop.evaluation.bootstrap import resampled_metrics
from treetop.evaluation.context import Context, frequencies, ranking_context
from treetop.evaluation.metrics import METRICS
from treetop.runtime import Runtime
from treetop.settings import auto, portfolio
from treetop.settings.schema import LinearSettings
from treetop.training.sampling import SampledFrom, TrialSample, sample_of
from treetop.training.trials import FeatureBank, trial

Kind = TypeVar("Kind", bound=LinearSettings)
# The metric of each value of `optimize`.
METRIC = {"nDCG@5": "nDCG@5", "P@1": "P@1", "PSP@5": "PSP@5", "macro-F1": "macro_f1@5"}
# With fewer documents, a competition would mostly measure chance.
FEWEST_DOCUMENTS = 500
# Where words and character n-grams are further apart than this, mixes of both are not tried.
FAR = 0.02
# Where only character n-grams compete, which are few candidates, their trials may take so many times
# the work of all others: with few documents, short n-grams seem better than they are.
LARGER = 3.0
# What a choice must gain for each multiple of the work of training on the rules' choice or, if that is
# more, on the best features alone.
PRICE = 0.001
# What it must gain on the rules' choice at least, and for each multiple of its work that it adds.
# Smaller leads on a sample often turn on all the data: three of four did (docs/defaults.md).
LEAST_GAIN = 0.01
RESAMPLES, CONFIDENCE = 500, 0.9


@dataclass(frozen=True)
class Judge:
    """Scores trials on the held-out documents by one metric."""

    sample: TrialSample
    metric: str
    counts: np.ndarray  # training documents of each sampled label
    documents: int
    seed: int

    def context(self, scores: np.ndarray) -> Context:
        """Rank the sampled labels by their scores, float32 of shape (held-out documents, labels)."""
        k = min(5, scores.shape[1])
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        best.sort(axis=1)
        ends = np.arange(0, best.size + 1, k)
        values = np.take_along_axis(scores, best, axis=1).ravel()
        ranked = sp.csr_matrix((values, best.ravel(), ends), shape=scores.shape)
        return ranking_context(
            self.sample.held_labels,
            ranked,
            int(self.metric.partition("@")[2]),
            train_counts=self.counts,
            train_documents=self.documents,
        )

    def value(self, scores: np.ndarray) -> float:
        """The metric of these scores."""
        return METRICS[self.metric.partition("@")[0]].function(self.context(scores))

    def surely_better(self, scores: np.ndarray, others: np.ndarray) -> bool:
        """Whether the metric of `scores` is significantly higher, by a paired bootstrap."""
        drawn = [
            resampled_metrics(self.context(given), [self.metric], RESAMPLES, self.seed)[self.metric]
            for given in (scores, others)
        ]
        return bool(np.quantile(drawn[0] - drawn[1], (1 - CONFIDENCE) / 2) > 0)


@dataclass(frozen=True)
class Contest:
    """The trials of one competition; each is done when its scores are first needed."""

    judge: Judge
    bank: FeatureBank
    settings: LinearSettings
    threads: int
    _tried: dict[str, np.ndarray] = field(default_factory=dict)
    _sizes: dict[str, float] = field(default_factory=dict)

    def scores(self, views: Sequence[str]) -> np.ndarray:
        """The mean of the scores of models of these features."""
        for ngrams in views:
            if ngrams not in self._tried:
                X, held = self.bank.of(ngrams)
                self._sizes[ngrams] = X.nnz
                self._tried[ngrams] = trial(X, held, self.judge.sample, self.settings, self.threads)
        return np.asarray(np.mean([self._tried[ngrams] for ngrams in views], axis=0))

    def value(self, views: Sequence[str]) -> float:
        """The metric of models of these features together."""
        return self.judge.value(self.scores(views))

    def work(self, views: Sequence[str]) -> float:
        """The work of training on these features: the number of their values."""
        self.scores(views)
        return sum(self._sizes[ngrams] for ngrams in views)

    def best_of(self, listed: Sequence[str]) -> float:
        """The best value of any of these features alone."""
        return max(self.value([ngrams]) for ngrams in listed)

    def winner(self, listed: Sequence[str], ruled: Sequence[str], trees: int) -> list[str]:
        """Choose the features of up to `trees` trees; the ruled ones win ties."""
        chosen = self.greedy(listed, ruled, trees)
        worth = self.is_worth_it(chosen, ruled) and self.surely_better(chosen, ruled)
        return chosen if worth else list(ruled)

    def is_worth_it(self, views: Sequence[str], ruled: Sequence[str]) -> bool:
        """Whether these features gain enough on the ruled ones for what training on them costs."""
        further = self.work(views) / max(1.0, self.work(ruled)) - 1
        return self.value(views) - self.value(ruled) > LEAST_GAIN * max(1.0, further)

    def surely_better(self, views: Sequence[str], others: Sequence[str]) -> bool:
        """Whether models of these features are significantly better than those of others."""
        return self.judge.surely_better(self.scores(views), self.scores(others))

    def lead_of_characters(self) -> float:
        """The value of the best character n-grams minus that of the best words."""
        return self.best_of(portfolio.CHARACTERS) - self.best_of(portfolio.WORDS)

    def needs_characters(self, ruled: Sequence[str]) -> bool:
        """Whether words only do harm, as in scripts without spaces."""
        characters = portfolio.CHARACTERS
        return self.lead_of_characters() > FAR and self.surely_better(characters, ruled)

    def candidates(self, rule: str) -> list[str]:
        """The features that compete: without characters if these are far behind."""
        words = portfolio.word_candidates(rule)
        if self.lead_of_characters() > -FAR:
            return list(dict.fromkeys((*words, *portfolio.CHARACTERS, *portfolio.MIXED)))
        return [ngrams for ngrams in words if not portfolio.uses_characters(ngrams)]

    def greedy(self, listed: Sequence[str], rule: Sequence[str], trees: int) -> list[str]:
        """Choose the features of one tree after the other, as long as it gains more than its price."""
        alone = max(listed, key=lambda ngrams: self.value([ngrams]))
        unit = max(1.0, self.work(rule), self.work([alone]))
        chosen: list[str] = []
        reached = -np.inf
        while len(chosen) < min(trees, len(listed)):
            worth = {
                ngrams: self.value([*chosen, ngrams]) - PRICE * self.work([*chosen, ngrams]) / unit
                for ngrams in listed
                if ngrams not in chosen
            }
            best = max(worth, key=worth.__getitem__)  # of equal ones the first
            if worth[best] <= reached:
                break
            reached = worth[best]
            chosen.append(best)
        return chosen


def decided(settings: Kind, documents: SampledFrom, runtime: Runtime) -> tuple[Kind, str]:
    """Decide on n-grams, if they are left open; also return a line that says why.

    The line is empty where rules decide: without a competition, or with too few documents for one.
    """
    ruled, _ = auto.with_ngrams(settings, documents.texts)
    if settings.ngrams != "auto" or not settings.competition or not enough(documents):
        return ruled, ""
    runtime.reporter.step("competition of features")
    costs = auto.with_costs(ruled, documents.Y, documents.weights)
    contest = contest_on(sample_of(documents, costs), documents.Y, costs, runtime.thread_count)
    if contest is None:
        return ruled, ""
    rule = ruled.ngrams.split("|")[: settings.trees]
    views: Sequence[str]
    if contest.needs_characters(rule):
        rule = list(portfolio.CHARACTERS[: settings.trees])
        larger = sample_of(documents, costs, LARGER)
        contest = contest_on(larger, documents.Y, costs, runtime.thread_count) or contest
        views = contest.winner(portfolio.CHARACTERS, rule, settings.trees)
    else:
        views = contest.winner(contest.candidates(ruled.ngrams), rule, settings.trees)
    line = explained(contest, views, rule, settings.optimize)
    runtime.reporter.figures(line)
    return replace(ruled, ngrams="|".join(views)), line


def contest_on(
    sample: TrialSample, Y: sp.csr_matrix, settings: LinearSettings, threads: int
) -> Contest | None:
    """Open a contest on a sample of the documents of Y; None if nothing can be judged on it."""
    if sample.held_labels.nnz == 0 or not sample.texts:
        return None
    counts = frequencies(Y)[sample.labels]
    judge = Judge(sample, METRIC[settings.optimize], counts, Y.shape[0], settings.seed)
    return Contest(judge, FeatureBank(sample, settings, threads), settings, threads)


def enough(documents: SampledFrom) -> bool:
    """Whether there are enough documents, all of them with labels and a text, for a competition."""
    count = len(documents.texts)
    if not FEWEST_DOCUMENTS <= count == documents.Y.shape[0] or documents.Y.shape[1] < 2:
        return False
    return all(isinstance(text, str) for text in documents.texts)  # any other is an error later


def explained(contest: Contest, views: Sequence[str], rule: Sequence[str], metric: str) -> str:
    """Say in one line what was chosen, with its value and that of words alone."""
    value, words = contest.value(views), contest.value(["word:1"])
    line = f"{portfolio.spoken(views)}: {metric} {value:.3f}, words alone {words:.3f}"
    return line if list(views) != list(rule) else f"{line}; nothing else is significantly better"
