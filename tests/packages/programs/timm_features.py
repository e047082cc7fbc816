"""timm: features from the inside of models, by their graphs."""

import timm
import torch
from same import done, fill, numbers, show
from timm.models._features_fx import FeatureGraphNet, create_feature_extractor, get_graph_node_names

x = numbers(1, 3, 64, 64)
backbone = fill(timm.create_model("resnet18")).eval()
with torch.no_grad():
    for i, feature in enumerate(FeatureGraphNet(backbone, (1, 3))(x)):
        show(f"stage {i}", feature)
    vit = fill(timm.create_model("vit_tiny_patch16_224", img_size=64, num_classes=3)).eval()
    found = create_feature_extractor(vit, {"blocks.2": "middle", "norm": "last"})(x)
    show("middle", found["middle"])
    show("last", found["last"])
    show("whole", float((vit.forward_features(x) - found["last"]).abs().max()) < 1e-4)
show("names", len(get_graph_node_names(timm.create_model("convnext_atto"))[0]))
done()
