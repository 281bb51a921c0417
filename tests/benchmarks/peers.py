"""What PyTorch takes for the same work on the CPU, beside libzero in the same process where that is possible.

usage: peers.py kernels --library libzero.so [--elements=N] [--threads=1,2]
           fused AdamW and a step of libzero in a world of one, interleaved, and whether both end with the same bits: one tensor, the list
           of GPT-2 small, and bf16 with an fp32 master, which in PyTorch is fused AdamW on the master between two rounds of copies (of
           libzero also with the 16 bits that a bf16 parameter lacks of that master in its place)
       peers.py steps [--ranks=2] [--elements-scale=1.0]
           the list of GPT-2 small over gloo: DDP, ZeroRedundancyOptimizer and FSDP2. Gradients are handed out ready, so that backward
           is what the wrapper adds to it
Medians of --repeats steps, with their extremes.
"""
import argparse
import ctypes
import math
import os
import statistics
import time

os.environ.setdefault("MKL_CBWR", "AVX2")  # otherwise torch's square roots may differ from IEEE 754's by one bit
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # idle threads must not take cores from the other library
import torch
import torch.distributed as dist
from torch import nn

from gpt_shapes import flatten, gpt2_blocks
from library import Library

F32, BF16 = 1, 4
KEY_THREADS, KEY_OVERLAP, KEY_MASTER = 102, 306, 353
MASTER_F32, MASTER_REMAINDER = 0, 2
SOURCE_LOCAL = 0
WARM_UPS = 2


class Table:
    """Samples by row, printed with the ratio to the first."""

    def __init__(self, title):
        self.title = title
        self.rows = {}

    def add(self, name, work, prepare=None):
        if prepare:
            prepare()
        begin = time.perf_counter()
        work()
        self.rows.setdefault(name, []).append(time.perf_counter() - begin)

    def print(self):
        print(f"{self.title}\n{'':40} {'median ms':>10} {'min ms':>10} {'max ms':>10} {'x first':>8}")
        first = statistics.median(next(iter(self.rows.values())))
        for name, samples in self.rows.items():
            median = statistics.median(samples)
            least, most = 1e3 * min(samples), 1e3 * max(samples)
            print(f"{name:40} {1e3 * median:10.2f} {least:10.2f} {most:10.2f} {median / first:8.2f}", flush=True)


class Libzero(Library):
    """An optimizer of libzero, alone in its world: AdamW over tensors of the given shapes."""

    def __init__(self, path, shapes, dtype, threads, values, master=MASTER_F32):
        super().__init__(path)
        self.shapes, self.dtype = shapes, dtype
        config = self.make("zero_config_create")
        self.call("zero_config_set_i64", config, KEY_THREADS, ctypes.c_int64(threads))
        self.call("zero_config_set_i64", config, KEY_OVERLAP, ctypes.c_int64(0))
        self.call("zero_config_set_i64", config, KEY_MASTER, ctypes.c_int64(master))
        self.group = self.make("zero_group_create_local", None, ctypes.c_int64(0), ctypes.c_int64(1), config)
        self.optimizer = self.make("zero_optimizer_create", self.group, config)
        param_id = ctypes.c_int64()
        for index, shape in enumerate(shapes):
            extents = (ctypes.c_int64 * len(shape))(*shape)
            dtype_number = F32 if dtype == torch.float32 else BF16
            self.call("zero_optimizer_add_param", self.optimizer, None, f"t{index}".encode(), dtype_number, extents,
                      ctypes.c_int64(len(shape)), ctypes.byref(param_id))
        self.call("zero_optimizer_seal", self.optimizer)
        for index, value in enumerate(values):
            self.param(index).copy_(value)
        self.call("zero_optimizer_begin", self.optimizer, SOURCE_LOCAL)

    def tensor_at(self, address, index):
        shape = self.shapes[index]
        nbytes = math.prod(shape) * self.dtype.itemsize
        memory = (ctypes.c_char * nbytes).from_address(address.value)
        return torch.frombuffer(memory, dtype=self.dtype).view(shape)

    def param(self, index):
        address, param_id = ctypes.c_void_p(), ctypes.c_int64(index)
        self.call("zero_optimizer_param_acquire", self.optimizer, param_id, None, ctypes.c_int64(0), None, ctypes.byref(address))
        self.call("zero_optimizer_param_release", self.optimizer, param_id)
        return self.tensor_at(address, index)

    def give(self, grads):
        """Gradients in the library's memory, ready."""
        for index, grad in enumerate(grads):
            address, accumulate, param_id = ctypes.c_void_p(), ctypes.c_int64(), ctypes.c_int64(index)
            self.call("zero_optimizer_grad_acquire", self.optimizer, param_id, None, ctypes.byref(address), ctypes.byref(accumulate))
            self.tensor_at(address, index).copy_(grad)
            count = ctypes.c_int64(grad.numel())
            self.call("zero_optimizer_grad_ready", self.optimizer, param_id, None, ctypes.c_int64(0), count, None)

    def step(self):
        self.call("zero_optimizer_step", self.optimizer, None, None)

    def release(self):
        self.lib.zero_optimizer_release(self.optimizer)
        self.lib.zero_group_release(self.group)


def differing_bits(library, params):
    """Elements of the parameters that are not the same bits."""
    words = torch.int32 if library.dtype == torch.float32 else torch.int16
    return sum(int((library.param(i).view(words) != param.view(words)).sum()) for i, param in enumerate(params))


def kernels_case(options, title, shapes, dtype, threads):
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    masters = [nn.Parameter(torch.randn(shape).to(dtype).float()) for shape in shapes]
    grads = [(torch.randn(shape) * 1e-2).to(dtype) for shape in shapes]
    params = masters if dtype == torch.float32 else [master.detach().to(dtype) for master in masters]
    for master, grad in zip(masters, grads):
        master.grad = grad.float() if dtype != torch.float32 else grad
    optimizer = torch.optim.AdamW(masters, lr=1e-3, weight_decay=0.01, fused=True)
    values = [param.detach() for param in params]
    library = Libzero(options.library, shapes, dtype, threads, values)
    mixed = dtype != torch.float32
    remainders = Libzero(options.library, shapes, dtype, threads, values, MASTER_REMAINDER) if mixed else None

    def torch_step():
        if mixed:
            torch._foreach_copy_([master.grad for master in masters], grads)
        optimizer.step()
        if mixed:
            torch._foreach_copy_(params, [master.detach() for master in masters])

    table = Table(f"{title}, {threads} threads")
    for repeat in range(options.repeats + WARM_UPS):
        if repeat == WARM_UPS:
            table.rows.clear()
        table.add("libzero step", library.step, lambda: library.give(grads))
        if mixed:
            table.add("libzero step, 16-bit remainders", remainders.step, lambda: remainders.give(grads))
        table.add("torch fused AdamW" + (" and copies" if mixed else ""), torch_step)
    table.print()
    print(f"elements with other bits after {options.repeats + WARM_UPS} steps: {differing_bits(library, values)}")
    library.release()
    if mixed:
        remainders.release()


def run_kernels(options):
    gpt2 = flatten(gpt2_blocks(options.elements_scale))
    for threads in [int(count) for count in options.threads.split(",")]:
        kernels_case(options, f"AdamW fp32, one tensor of {options.elements}", [(options.elements,)], torch.float32, threads)
        kernels_case(options, f"AdamW fp32, GPT-2 list of {len(gpt2)} tensors", gpt2, torch.float32, threads)
        kernels_case(options, f"AdamW bf16 with fp32 master, GPT-2 list of {len(gpt2)} tensors", gpt2, torch.bfloat16, threads)


class HandOut(torch.autograd.Function):
    """Passes a scalar on; backward gives each parameter a gradient that was there before."""

    @staticmethod
    def forward(context, scalar, grads, *params):
        context.grads = grads
        return scalar.clone()

    @staticmethod
    def backward(context, scalar_grad):
        return scalar_grad, None, *context.grads


class Block(nn.Module):
    def __init__(self, shapes):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(shape) * 0.02) for shape in shapes])
        self.grads = [torch.randn(shape) * 1e-3 for shape in shapes]

    def forward(self, scalar):
        return HandOut.apply(scalar, self.grads, *self.weights)


def make_model(blocks):
    return nn.Sequential(*[Block(shapes) for shapes in blocks])


def make_case(name, blocks):
    """A model and its optimizer."""
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    model = make_model(blocks)
    if name.startswith("FSDP2"):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        reshards = name.endswith("resharded")
        for block in model:
            fully_shard(block, mesh=mesh, reshard_after_forward=reshards)
        fully_shard(model, mesh=mesh, reshard_after_forward=reshards)
        return model, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    if name.startswith("ZeroRedundancyOptimizer"):
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, parameters_as_bucket_view=True, lr=1e-3, fused=True)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


CASES = ["DDP, fused AdamW", "ZeroRedundancyOptimizer, fused AdamW", "FSDP2, stays gathered", "FSDP2, resharded"]


def time_step(model, optimizer):
    """Seconds of the slowest rank."""
    dist.barrier()
    begin = time.perf_counter()
    model(torch.zeros(1, requires_grad=True)).sum().backward()
    optimizer.step()
    seconds = torch.tensor([time.perf_counter() - begin])
    optimizer.zero_grad(set_to_none=False)  # gradients made afresh would also pay for the first touch of their memory
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    return float(seconds)


def run_rank(rank, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    dist.init_process_group("gloo", rank=rank, world_size=options.ranks)
    torch.set_num_threads(max(1, os.cpu_count() // options.ranks))
    blocks = gpt2_blocks(options.elements_scale)
    shapes = flatten(blocks)
    table = Table(f"AdamW fp32, {options.ranks} ranks over gloo, {len(shapes)} tensors, {sum(map(math.prod, shapes))} elements: "
                  "gradients and step of the slowest rank")
    for name in CASES:
        model, optimizer = make_case(name, blocks)
        samples = [time_step(model, optimizer) for _ in range(options.repeats + WARM_UPS)]
        table.rows[name] = samples[WARM_UPS:]
        del model, optimizer
    if rank == 0:
        table.print()
    dist.destroy_process_group()


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def parse():
    parser = argparse.ArgumentParser(description="PyTorch's times for the work that libzero's benchmarks do", allow_abbrev=False)
    parser.add_argument("what", choices=["kernels", "steps"])
    parser.add_argument("--library", help="libzero.so")
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--elements-scale", type=float, default=1.0)
    parser.add_argument("--threads", default="1,2" if os.cpu_count() > 1 else "1")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    if options.what == "kernels" and not options.library:
        parser.error("kernels needs --library=libzero.so")
    options.port = free_port()
    return options


if __name__ == "__main__":
    given = parse()
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}")
    if given.what == "kernels":
        run_kernels(given)
    else:
        torch.multiprocessing.spawn(run_rank, (given,), given.ranks)
