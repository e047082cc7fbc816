"""torchvision: features from the inside of models, by their graphs."""

from same import done, fill, numbers, show
from torchvision.models import mobilenet_v3_small, resnet18
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

model = fill(resnet18()).eval()
train_names, eval_names = get_graph_node_names(model)
show("nodes", [len(train_names), len(eval_names), eval_names.index("layer3.0.relu")])
x = numbers(1, 3, 64, 64)
extractor = create_feature_extractor(model, {"layer1": "early", "layer3.0.relu": "inside", "avgpool": "late"})
for name, value in extractor(x).items():
    show(name, value)
show("code", [len(extractor.code.splitlines()), len(list(extractor.graph.nodes))])
small = create_feature_extractor(fill(mobilenet_v3_small()).eval(), ["features.3", "avgpool"])
for name, value in small(x).items():
    show(name, value)
done()
