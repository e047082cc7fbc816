"""scikit-learn and SciPy on arrays of xtensor and of NumPy: the names of what differs, or fails, as one line of JSON.

SciPy reads its switch when it is imported, so that this is a program of its own.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import scipy.cluster.vq
import scipy.fft
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats
from sklearn import config_context, metrics
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

import xtensor

rng = np.random.default_rng(0)
ROWS = rng.standard_normal((40, 5))
OTHER = rng.standard_normal((40, 5))
POSITIVE = rng.random(12) + 0.1
CLASSES = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(np.int64) + (ROWS[:, 2] > 0)
GUESSES = np.where(rng.random(40) < 0.2, (CLASSES + 1) % 3, CLASSES)
LINE = ROWS @ np.arange(5.0) + 1

SKLEARN: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "lda decision": (
        lambda x, y: LinearDiscriminantAnalysis().fit(x, y).decision_function(x),
        (ROWS, CLASSES),
    ),
    "lda classes": (lambda x, y: LinearDiscriminantAnalysis().fit(x, y).predict(x), (ROWS, CLASSES)),
    "pca": (lambda x: PCA(2, svd_solver="full").fit_transform(x), (ROWS,)),
    "ridge": (lambda x, y: Ridge(solver="svd").fit(x, y).predict(x), (ROWS, LINE)),
    "naive bayes": (lambda x, y: GaussianNB().fit(x, y).predict_proba(x), (ROWS, CLASSES)),
    "standard scaler": (lambda x: StandardScaler().fit_transform(x), (ROWS,)),
    "min max scaler": (lambda x: MinMaxScaler().fit_transform(x), (ROWS,)),
    "max abs scaler": (lambda x: MaxAbsScaler().fit_transform(x), (ROWS,)),
    "normalizer": (lambda x: Normalizer().fit_transform(x), (ROWS,)),
    "accuracy": (metrics.accuracy_score, (CLASSES, GUESSES)),
    "confusion": (metrics.confusion_matrix, (CLASSES, GUESSES)),
    "f1": (lambda a, b: metrics.f1_score(a, b, average="macro"), (CLASSES, GUESSES)),
    "r2": (metrics.r2_score, (LINE, LINE + ROWS[:, 0])),
    "squared error": (metrics.mean_squared_error, (LINE, LINE + ROWS[:, 0])),
    "distances": (metrics.pairwise.euclidean_distances, (ROWS,)),
    "rbf": (metrics.pairwise.rbf_kernel, (ROWS,)),
}

SCIPY: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "zscore": (scipy.stats.zscore, (ROWS,)),
    "skew": (scipy.stats.skew, (ROWS,)),
    "ttest": (lambda a, b: scipy.stats.ttest_ind(a, b).pvalue, (ROWS, OTHER)),
    "pearson": (lambda a, b: scipy.stats.pearsonr(a, b).statistic, (ROWS, OTHER)),
    "rank": (scipy.stats.rankdata, (ROWS,)),
    "entropy": (scipy.stats.entropy, (POSITIVE,)),
    "logsumexp": (lambda x: scipy.special.logsumexp(x, axis=0), (ROWS,)),
    "expit": (scipy.special.expit, (ROWS,)),
    "gammaln": (scipy.special.gammaln, (POSITIVE,)),
    "fft": (scipy.fft.fft, (ROWS,)),
    "dct": (scipy.fft.dct, (ROWS,)),
    "fftconvolve": (scipy.signal.fftconvolve, (POSITIVE, POSITIVE)),
    "detrend": (scipy.signal.detrend, (ROWS,)),
    "whiten": (scipy.cluster.vq.whiten, (ROWS,)),
    "quantization": (lambda a, b: scipy.cluster.vq.vq(a, b)[1], (ROWS, OTHER[:3])),
    "gaussian filter": (lambda x: scipy.ndimage.gaussian_filter(x, 1.0), (ROWS,)),
}


def compare(run: Callable[..., Any], arrays: tuple[Any, ...], dispatch: bool) -> str:
    """What is wrong with the results on tensors: nothing where they are NumPy's."""
    wanted = run(*arrays)
    try:
        with config_context(array_api_dispatch=dispatch):
            found = run(*[xtensor.from_numpy(np.array(a)) for a in arrays])
    except Exception:
        return traceback.format_exc(limit=-4)
    if isinstance(wanted, np.ndarray) and not isinstance(found, xtensor.Tensor):
        return f"a {type(found).__name__} came back"
    if not np.allclose(np.asarray(found), wanted, rtol=1e-6, atol=1e-8):
        return f"{found} instead of {wanted}"
    return ""


def main() -> None:
    warnings.simplefilter("ignore")
    wrong = {}
    for table, dispatch in ((SKLEARN, True), (SCIPY, False)):
        for name, (run, arrays) in table.items():
            if told := compare(run, arrays, dispatch):
                wrong[name] = told
    json.dump({"run": len(SKLEARN) + len(SCIPY), "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    main()
