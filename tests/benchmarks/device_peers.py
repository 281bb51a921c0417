"""What PyTorch's fused AdamW takes on a CUDA device beside a step of libzero that keeps everything there, in one process, interleaved, on the
same parameters and gradients, and how far the results of both lie apart.

usage: device_peers.py --library libzero.so --module libzero_cuda.so [--elements=N] [--repeats=9]
Medians of --repeats steps, with their extremes; a step ends when the device has ended it.
"""
import argparse
import ctypes
import statistics
import time

import torch

from library import Library

F32 = 1
KEY_OVERLAP, KEY_DEVICE, KEY_CUDA_MODULE, KEY_TIER = 306, 330, 331, 332
TIER_DEVICE = 1
SLOT_PARAM = 1
SOURCE_SHARDS = 2
WARM_UPS = 3


class Libzero(Library):
    """AdamW over flat fp32 tensors, alone in its world, on device 0."""

    def __init__(self, options, values):
        super().__init__(options.library)
        self.counts = [value.numel() for value in values]
        self.stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        config = self.make("zero_config_create")
        for key, value in ((KEY_OVERLAP, 0), (KEY_DEVICE, 0), (KEY_TIER, TIER_DEVICE)):
            self.call("zero_config_set_i64", config, key, ctypes.c_int64(value))
        self.call("zero_config_set_str", config, KEY_CUDA_MODULE, options.module.encode())
        self.group = self.make("zero_group_create_local", None, ctypes.c_int64(0), ctypes.c_int64(1), None)
        self.optimizer = self.make("zero_optimizer_create", self.group, config)
        param_id = ctypes.c_int64()
        for index, count in enumerate(self.counts):
            self.call("zero_optimizer_add_param", self.optimizer, None, f"t{index}".encode(), F32, (ctypes.c_int64 * 1)(count),
                      ctypes.c_int64(1), ctypes.byref(param_id))
        self.call("zero_optimizer_seal", self.optimizer)
        for index, value in enumerate(values):
            host = value.detach().cpu()
            self.call("zero_optimizer_write", self.optimizer, ctypes.c_int64(index), SLOT_PARAM, ctypes.c_int64(0),
                      ctypes.c_void_p(host.data_ptr()), ctypes.c_int64(host.numel()), None)
        self.call("zero_optimizer_begin", self.optimizer, SOURCE_SHARDS)

    def give(self, grads):
        for index, grad in enumerate(grads):
            self.call("zero_optimizer_grad_ready", self.optimizer, ctypes.c_int64(index), ctypes.c_void_p(grad.data_ptr()), ctypes.c_int64(0),
                      ctypes.c_int64(grad.numel()), self.stream)

    def step(self):
        self.call("zero_optimizer_step", self.optimizer, self.stream, None)

    def params(self):
        """Copies of all parameters, on the device."""
        copies = [torch.empty(count, device="cuda") for count in self.counts]
        address = ctypes.c_void_p()
        for index, copy in enumerate(copies):
            self.call("zero_optimizer_param_acquire", self.optimizer, ctypes.c_int64(index), ctypes.c_void_p(copy.data_ptr()),
                      ctypes.c_int64(copy.numel()), self.stream, ctypes.byref(address))
            self.call("zero_optimizer_param_release", self.optimizer, ctypes.c_int64(index))
        return copies

    def release(self):
        self.lib.zero_optimizer_release(self.optimizer)
        self.lib.zero_group_release(self.group)


def seconds(work):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def compare(title, counts, options):
    torch.manual_seed(1)
    params = [torch.nn.Parameter(torch.randn(count, device="cuda")) for count in counts]
    for param in params:
        param.grad = torch.randn_like(param) * 1e-2
    library = Libzero(options, params)
    peer = torch.optim.AdamW(params, lr=1e-3, weight_decay=0.01, fused=True)
    mine, theirs = [], []
    for repeat in range(-WARM_UPS, options.repeats):
        library.give([param.grad for param in params])
        times = seconds(library.step), seconds(peer.step)
        if repeat >= 0:
            mine.append(times[0])
            theirs.append(times[1])
    apart = max(float((got - param.detach()).abs().max()) for got, param in zip(library.params(), params))
    library.release()
    for name, samples in (("libzero", mine), ("torch fused AdamW", theirs)):
        print(f"{title + ': ' + name:44} {1e3 * statistics.median(samples):10.3f} {1e3 * min(samples):10.3f} {1e3 * max(samples):10.3f} "
              f"{statistics.median(theirs) / statistics.median(samples):8.2f}")
    print(f"{title}: parameters lie {apart:.2e} apart after {options.repeats + WARM_UPS} steps", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--library", required=True)
    parser.add_argument("--module", required=True)
    parser.add_argument("--elements", type=int, default=134_217_728)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("device_peers.py: PyTorch sees no CUDA device")
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name(0)}")
    print(f"{'':44} {'median ms':>10} {'min ms':>10} {'max ms':>10} {'x torch':>8}")
    compare("one tensor", [options.elements], options)
    compare("2000 tensors of 4096", [4096] * 2000, options)


if __name__ == "__main__":
    main()
