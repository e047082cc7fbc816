"""ptwt, pytorch-msssim, torch-dct and julius: wavelets, similarity of images, cosine transforms and filters."""

import julius
import numpy as np
import ptwt
import pytorch_msssim
import torch_dct
from same import done, numbers, show

a = numbers(1, 3, 180, 180).sigmoid()
b = (a + 0.1 * numbers(1, 3, 180, 180, seed=2)).clamp(0, 1).requires_grad_()
similar = pytorch_msssim.ssim(a, b, data_range=1.0)
show("ssim", similar)
show("ms_ssim", pytorch_msssim.ms_ssim(a, b, data_range=1.0))
similar.backward()
show("gradient", b.grad)
x = numbers(2, 64)
parts = ptwt.wavedec(x, "db2", level=2)
for at, part in enumerate(parts):
    show(f"part {at}", part)
show("whole", ptwt.waverec(parts, "db2"))
low, *details = ptwt.wavedec2(numbers(1, 32, 32), "haar", level=2)
show("low", low)
show("detail", details[0][1])
show("continuous", ptwt.cwt(x, np.arange(1, 5), "mexh")[0])
show("cosine", torch_dct.dct(x))
show("back", torch_dct.idct(torch_dct.dct(x)))
show("cosine of two", torch_dct.dct_2d(numbers(8, 8)))
show("resampled", julius.resample_frac(numbers(1, 200), 4, 5))
show("low pass", julius.lowpass_filter(numbers(1, 200), 0.1))
show("convolved", julius.fft_conv1d(numbers(1, 1, 100), numbers(1, 1, 30)))
done()
