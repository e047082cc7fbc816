"""`torch.utils.model_zoo`: the older name of `torch.hub`'s download of weights."""

from ..compat.hub import download_url_to_file, load_state_dict_from_url, tqdm

__all__ = ["load_state_dict_from_url", "load_url", "tqdm"]

load_url = load_state_dict_from_url
_download_url_to_file = download_url_to_file
