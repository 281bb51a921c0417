"""The rows of strategy_peers.py: each prepares itself, and makes a step or a synchronisation. Also
the ranks, which measure through libzero, and the cable between their hosts. Knows no tables.
PyTorch and torchft are imported by their rows only."""
import ctypes
import math
import mmap
import os
import pathlib
import random
import socket
import subprocess

from library import Library

F32, F64, REDUCE_MAX = 1, 2, 4
KEY_REPLICA_RANKS, KEY_SYNC_PERIOD, KEY_GRAD_CODE, KEY_GATHER_CODE, KEY_SYNC_CODE = 333, 334, 339, 340, 341
KEY_OUTER_LR, KEY_OUTER_MOMENTUM = 412, 413
I8, I4 = 2, 3
SOURCE_SHARDS, BY_HAND = 2, 1 << 40
INTERFACE, ADDRESSES = "zero0", ("10.77.0.1", "10.77.0.2")  # of netns_mpirun.sh
LINE = 256
STEP, SYNC = "step", "synchronisation"
HOST = {KEY_REPLICA_RANKS: -1}
LOCAL = {**HOST, KEY_SYNC_PERIOD: BY_HAND, KEY_OUTER_LR: 0.7, KEY_OUTER_MOMENTUM: 0.9}
OURS = {  # name: keys, and the bytes per element that leave a host
    "fp32": ({}, 4),
    "fp32, replicas": (HOST, 4),
    "i8 gradients": ({**HOST, KEY_GRAD_CODE: I8}, 1 + 4 / LINE),
    "i4 gradients": ({**HOST, KEY_GRAD_CODE: I4}, 0.5 + 4 / LINE),
    "i4 gradients, i4 gathers": ({**HOST, KEY_GRAD_CODE: I4, KEY_GATHER_CODE: I4}, 0.5 + 4 / LINE),
    "local steps": (LOCAL, 4),
    "local steps, i4": ({**LOCAL, KEY_SYNC_CODE: I4}, 0.5 + 4 / LINE),
}
HOOKS = {"DDP": None, "DDP, fp16 hook": "fp16", "DDP, bf16 hook": "bf16", "DDP, PowerSGD hook, rank 4": "PowerSGD"}
TORCHFT = "torchft DiLoCo"


class World(Library):
    """The ranks that mpirun has started. They wait for one another through libzero, for peers' rows
    too."""

    def __init__(self, path):
        super().__init__(path)
        self.group = self.make("zero_group_create_env", None)
        self.rank = self.number("zero_group_rank")
        self.size = self.number("zero_group_size")
        self.local_rank = int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
        self.host = self.rank // 2

    def number(self, name):
        value = ctypes.c_int64()
        self.call(name, self.group, ctypes.byref(value))
        return value.value

    def barrier(self):
        self.call("zero_group_barrier", self.group)

    def most(self, value):
        """The greatest of all ranks."""
        number, one = ctypes.c_double(value), ctypes.c_int64(1)
        self.call("zero_group_all_reduce", self.group, ctypes.byref(number), one, ctypes.byref(number), one, F64, REDUCE_MAX, None)
        return number.value

    def say(self, text):
        if self.rank == 0:
            print(text, flush=True)


class Cable:
    """This host's end. Its first rank limits the rate for both."""

    def __init__(self, world, mbits):
        self.world, self.mbits = world, mbits

    def tc(self, *words):
        self.world.barrier()
        if self.world.local_rank == 0 and self.mbits:
            subprocess.run(["tc", "qdisc", *words], check=True)
        self.world.barrier()

    def limit(self):
        self.tc("replace", "dev", INTERFACE, "root", "tbf", "rate", f"{self.mbits}mbit", "burst", "256kb", "latency", "50ms")

    def free(self):
        self.tc("del", "dev", INTERFACE, "root")

    def sent_nbytes(self):
        lines = pathlib.Path("/proc/self/net/dev").read_text().splitlines()
        return next(int(line.split(":")[1].split()[8]) for line in lines if line.strip().startswith(INTERFACE + ":"))


class Ours:
    """An optimizer of libzero over the list, with gradients in this program's memory."""

    def __init__(self, world, tensors, keys, grads):
        self.world, self.grads = world, grads
        self.counts = [math.prod(shape) for shape in tensors]
        config = world.make("zero_config_create")
        for key, value in keys.items():
            kind, number = ("f64", ctypes.c_double) if isinstance(value, float) else ("i64", ctypes.c_int64)
            world.call(f"zero_config_set_{kind}", config, key, number(value))
        self.optimizer = world.make("zero_optimizer_create", world.group, config)
        world.lib.zero_config_release(config)
        param_id = ctypes.c_int64()
        for index, shape in enumerate(tensors):
            world.call("zero_optimizer_add_param", self.optimizer, None, f"t{index}".encode(), F32, (ctypes.c_int64 * len(shape))(*shape),
                       ctypes.c_int64(len(shape)), ctypes.byref(param_id))
        world.call("zero_optimizer_seal", self.optimizer)
        world.call("zero_optimizer_begin", self.optimizer, SOURCE_SHARDS)
        self.works = {STEP: self.step}
        if KEY_SYNC_PERIOD in keys:
            self.works[SYNC] = self.synchronise
        for _ in range(2):
            for work in self.works.values():
                work()

    def step(self):
        """Gradients arrive in the order of a backward pass, and the next forward pass finds all
        parameters gathered."""
        offset = sum(self.counts)
        for index in reversed(range(len(self.counts))):
            offset -= self.counts[index]
            self.world.call("zero_optimizer_grad_ready", self.optimizer, ctypes.c_int64(index),
                            ctypes.c_void_p(self.grads.address + 4 * offset), ctypes.c_int64(0), ctypes.c_int64(self.counts[index]), None)
        self.world.call("zero_optimizer_step", self.optimizer, None, None)
        address, no_count = ctypes.c_void_p(), ctypes.c_int64(0)
        for index in range(len(self.counts)):
            param_id = ctypes.c_int64(index)
            self.world.call("zero_optimizer_param_acquire", self.optimizer, param_id, None, no_count, None, ctypes.byref(address))
            self.world.call("zero_optimizer_param_release", self.optimizer, param_id)

    def synchronise(self):
        self.world.call("zero_optimizer_sync", self.optimizer, None, None)

    def release(self):
        self.world.lib.zero_optimizer_release(self.optimizer)


class Gradients:
    """Normal numbers, repeated: those of a rank are its own."""

    def __init__(self, count, seed):
        draw = random.Random(seed)
        pattern = (ctypes.c_float * (1 << 18))(*(draw.gauss(0, 1e-3) for _ in range(1 << 18)))
        self.memory = mmap.mmap(-1, 4 * count)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for begin in range(0, count, len(pattern)):
            ctypes.memmove(self.address + 4 * begin, pattern, 4 * min(len(pattern), count - begin))


def start_torch(world):
    """Makes PyTorch's ranks, once. Each has one thread, as each rank of libzero."""
    import torch
    import torch.distributed as dist

    if dist.is_initialized():
        return
    os.environ["GLOO_SOCKET_IFNAME"] = INTERFACE
    torch.set_num_threads(1)
    torch.manual_seed(world.rank)
    dist.init_process_group("gloo", init_method=f"tcp://{ADDRESSES[0]}:29511", rank=world.rank, world_size=world.size)


class Ddp:
    """DistributedDataParallel over gloo and fused AdamW, with a hook that makes less of the gradients."""

    def __init__(self, world, blocks, hook):
        start_torch(world)
        import torch
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
        from torch.nn.parallel import DistributedDataParallel

        from peers import make_model

        self.scalar = torch.zeros(1, requires_grad=True)
        # PowerSGD begins a second sum when its first has ended. With several buckets, ranks may
        # begin sums in different orders, and gloo ends the process.
        mebibytes = 1024 if hook == "PowerSGD" else None
        self.model = DistributedDataParallel(make_model(blocks), gradient_as_bucket_view=True, bucket_cap_mb=mebibytes)
        if hook == "PowerSGD":
            state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
            self.model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        elif hook:
            self.model.register_comm_hook(None, getattr(default_hooks, f"{hook}_compress_hook"))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.works = {STEP: self.step}
        for _ in range(4):  # buckets are rebuilt after the first; the hook of PowerSGD sends the first two in full
            self.step()

    def step(self):
        self.model(self.scalar).sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)

    def release(self):
        del self.model, self.optimizer


class Torchft:
    """torchft's DiLoCo with one replica per host. Each of its ranks has half of each tensor, as if
    FSDP2 had sharded the replica: whole tensors on both ranks would cross the cable twice. Every
    local step ends with a synchronisation of one bucket."""

    def __init__(self, world, tensors):
        start_torch(world)
        from datetime import timedelta

        import torch
        from torchft import Manager, ProcessGroupGloo
        from torchft.coordination import LighthouseServer
        from torchft.local_sgd import DiLoCo

        own, long = ADDRESSES[world.host], timedelta(minutes=30)
        socket.gethostname = lambda: own  # torchft's ranks reach one another by it, and no table has the hosts' names
        self.lighthouse = LighthouseServer(bind="[::]:29512", min_replicas=2, join_timeout_ms=60000) if world.rank == 0 else None
        first = world.local_rank == 0
        self.store = torch.distributed.TCPStore(own, 29513, is_master=True, wait_for_workers=False) if first else None
        world.barrier()
        self.manager = Manager(pg=ProcessGroupGloo(timeout=long), load_state_dict=None, state_dict=None, min_replica_size=2,
                               use_async_quorum=False, timeout=long, quorum_timeout=long, rank=world.local_rank, world_size=2,
                               store_addr=own, store_port=29513, lighthouse_addr=f"http://{ADDRESSES[0]}:29512",
                               replica_id=f"replica{world.host}", hostname=own, init_sync=False)
        halves = [(shape[0] // 2, *shape[1:]) for shape in tensors]
        self.model = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(shape) * 0.02) for shape in halves])
        for param in self.model:
            param.grad = torch.randn(param.shape) * 1e-3
        self.inner = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        outer = torch.optim.SGD(self.model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
        self.diloco = DiLoCo(self.manager, [self.model], self.inner, outer, sync_every=1, use_bucketization=True)
        self.diloco.__enter__()
        self.works = {SYNC: self.synchronise}
        for _ in range(2):
            self.synchronise()

    def synchronise(self):
        before = self.manager.current_step()
        self.inner.step()
        if self.manager.current_step() != before + 1:
            raise RuntimeError("torchft discarded the synchronisation")

    def release(self):
        self.diloco.__exit__(None, None, None)
        self.manager.shutdown()
        del self.model, self.inner, self.diloco
        if self.lighthouse:
            self.lighthouse.shutdown()
