"""torchmetrics: metrics of classes, numbers, retrieval, text and images, in batches and in a collection."""

import torch
import torchmetrics as tm
from same import done, integers, numbers, show

score, target = numbers(40, 4).softmax(-1), integers(4, 40, seed=1)
collection = tm.MetricCollection(
    {
        "accuracy": tm.Accuracy("multiclass", num_classes=4),
        "f1": tm.F1Score("multiclass", num_classes=4, average="macro"),
        "auroc": tm.AUROC("multiclass", num_classes=4),
        "confusion": tm.ConfusionMatrix("multiclass", num_classes=4),
        "precision": tm.AveragePrecision("multiclass", num_classes=4),
        "calibration": tm.CalibrationError("multiclass", num_classes=4),
        "kappa": tm.CohenKappa("multiclass", num_classes=4),
    }
)
for part in range(0, 40, 10):
    collection.update(score[part : part + 10], target[part : part + 10])
for name, value in collection.compute().items():
    show(name, value.float())
x, y = numbers(30), numbers(30, seed=3)
for metric in (
    tm.MeanSquaredError(),
    tm.R2Score(),
    tm.PearsonCorrCoef(),
    tm.SpearmanCorrCoef(),
    tm.MeanAbsoluteError(),
    tm.ExplainedVariance(),
    tm.KendallRankCorrCoef(),
):
    show(type(metric).__name__, metric(x, x + 0.5 * y))
images = numbers(2, 3, 24, 24).sigmoid()
others = (images + 0.1 * numbers(2, 3, 24, 24, seed=4)).clamp(0, 1)
show("ssim", tm.image.StructuralSimilarityIndexMeasure(data_range=1.0)(images, others))
show("psnr", tm.image.PeakSignalNoiseRatio(data_range=1.0)(images, others))
show("bleu", tm.text.BLEUScore(n_gram=2)(["the cat sat here"], [["the cat sat there", "a cat sat here"]]))
show("words", tm.text.WordErrorRate()(["the cat sat"], ["a cat sat down"]))
show("retrieval", tm.retrieval.RetrievalMAP()(x.sigmoid(), y > 0, indexes=torch.arange(30) // 6))
show("mean", tm.MeanMetric()(x))
done()
