"""Training with libzero.torch against plain torch, in every stage. Ranks are threads of this program."""

import copy
import unittest

import ranks
from failing import TestCase
from libzero import Tier
from torch_models import STAGES, Adapted, Transformer, close, made, network, nn, plain, point_loss, sharded, torch, word_loss
from torch.utils.checkpoint import checkpoint

from libzero.torch import ShardedOptimizer


class TrainingTest(TestCase):
    def agrees(self, model, loss, steps=4, tolerance=1e-5, stages=STAGES, reference=None, sizes=(1, 2), values_too=True, **how):
        """All stages have the bits of each other, and the losses and parameters of plain torch on all ranks' data."""
        for size in sizes:
            expected = copy.deepcopy(model)
            losses = plain(expected, loss, steps, size, **(reference(expected) if reference else {}))
            bits = []
            for stage in stages:
                found = sharded(model, loss, steps, stage, size, **how)
                for rank, (mine, values, _) in enumerate(found):
                    for step in range(steps):
                        self.assertAlmostEqual(mine[step], losses[step][rank], delta=tolerance, msg=f"stage {stage}, step {step}")
                    if values_too:
                        self.assertTrue(close(values, expected.parameters(), 10 * tolerance), f"stage {stage}, rank {rank} of {size}")
                    bits.append(values)
            for values in bits[1:]:
                self.assertTrue(all(map(torch.equal, values, bits[0])), "stages and ranks have other bits")

    def test_a_transformer_with_tied_weights(self):
        # Some biases of attention have no influence: their gradients are rounding errors, which Adam makes large.
        self.agrees(made(Transformer), word_loss, steps=6, values_too=False)

    def test_modules_that_work_in_place(self):
        self.agrees(made(network), point_loss)

    def test_a_frozen_base_with_trained_corrections(self):
        def adapted():
            return nn.Sequential(Adapted(nn.Linear(6, 12)), nn.Tanh(), Adapted(nn.Linear(12, 3)))

        model = made(adapted)
        self.agrees(model, point_loss)
        for stage in STAGES:
            for _, values, slots in sharded(model, point_loss, 2, stage, then=lambda o, m: [len(o.optimizer.slots(n)) for n in range(8)]):
                for (name, first), value in zip(model.named_parameters(), values):
                    self.assertEqual(torch.equal(first, value), "base" in name)
                self.assertEqual(sum(slots), 4 * 1 + 4 * 4)  # frozen ones have no states; others two moments and a count

    def test_a_module_reads_a_parameter_after_its_gradients_are_complete(self):
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(6, 6), requires_grad=False)
                self.scale = nn.Parameter(torch.ones(6))

            def forward(self, x):
                return (x @ self.weight) * self.scale

        self.agrees(made(lambda: nn.Sequential(nn.Linear(6, 6), Scaled(), Scaled())), point_loss)

    def test_activation_checkpointing(self):
        for reentrant in (False, True):
            model = made(Transformer)
            expected = sharded(model, word_loss, 3, 3)
            model.wrap = lambda layer, x, how=reentrant: checkpoint(layer, x, use_reentrant=how)
            for stage in STAGES:
                found = sharded(model, word_loss, 3, stage)
                self.assertEqual([losses for losses, *_ in found], [losses for losses, *_ in expected])

    def test_groups_and_schedules(self):
        def grouped(model):
            small = [p for p in model.parameters() if p.ndim < 2]
            return [{"params": [p for p in model.parameters() if p.ndim > 1]}, {"params": small, "lr": 3e-2, "weight_decay": 0.0}]

        def schedule(optimizer):
            return torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.02, 0.04], total_steps=8)

        def at(step):
            return lambda model, rank, _: point_loss(model, rank, step)

        model = made(network)
        expected = copy.deepcopy(model)
        reference = torch.optim.AdamW(grouped(expected), lr=1e-2, weight_decay=0.1)
        rates = schedule(reference)
        losses = [plain(expected, at(step), 1, optimizer=reference)[0] for step in range(4) if step == 0 or rates.step() is None]

        def body(group, stage):
            mine = copy.deepcopy(model)
            optimizer = ShardedOptimizer(mine, grouped(mine), stage=stage, group=group, lr=1e-2, weight_decay=0.1)
            self.assertEqual([g["betas"] for g in optimizer.param_groups], [(0.9, 0.999)] * 2)
            rates = schedule(optimizer)
            for step in range(4):
                optimizer.zero_grad()
                loss = point_loss(mine, group.rank, step)
                loss.backward()
                optimizer.step()
                rates.step()
                self.assertAlmostEqual(loss.item(), losses[step][group.rank], delta=1e-5)
            optimizer.close()

        for stage in STAGES:
            ranks.run(2, lambda group, stage=stage: body(group, stage))

    def test_clipping(self):
        norms = []

        def clip(optimizer, model):
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1).item())

        found = []
        model = made(network)
        self.agrees(
            model,
            point_loss,
            reference=lambda expected: {"each": clip},
            each=lambda optimizer, model: found.append(optimizer.clip_grad_norm_(0.1).item()),
        )
        self.assertTrue(all(any(abs(norm - other) < 1e-5 for other in norms) for norm in found))
        self.assertGreater(max(norms), 0.1)

    def test_bf16(self):
        def rounded(values):
            return [p.detach().to(torch.bfloat16) for p in values]

        model = made(network)
        masters = copy.deepcopy(model).to(torch.bfloat16).float()
        reference = torch.optim.AdamW(masters.parameters(), lr=1e-2)
        for step in range(4):
            gradients = []
            for rank in range(2):
                copied = copy.deepcopy(masters).to(torch.bfloat16)
                point_loss(copied, rank, step).backward()
                gradients.append([p.grad.float() for p in copied.parameters()])
            for p, *both in zip(masters.parameters(), *gradients):
                p.grad = (sum(both) / 2).to(torch.bfloat16).float()
            reference.step()
        bits = [values for stage in STAGES for _, values, _ in sharded(model.to(torch.bfloat16), point_loss, 4, stage)]
        self.assertEqual({value.dtype for value in bits[0]}, {torch.bfloat16})
        for values in bits:
            self.assertTrue(all(map(torch.equal, values, bits[0])))
            self.assertTrue(close(values, rounded(masters.parameters()), 2**-8))

    def test_parameters_that_a_step_does_not_use_stay(self):
        class Branches(nn.Module):
            def __init__(self):
                super().__init__()
                self.used, self.left = nn.Linear(6, 3), nn.Linear(6, 3)

            def forward(self, x):
                return self.used(x)

        self.agrees(made(Branches), point_loss)

    def test_parameters_in_lists_and_functions_of_parameters(self):
        class Listed(nn.Module):
            def __init__(self):
                super().__init__()
                self.scales = nn.ParameterList([torch.ones(3), torch.zeros(3)])
                self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(6, 3))

            def forward(self, x):
                return self.linear(x) * self.scales[0] + self.scales[1]

        self.agrees(made(Listed), point_loss)


class MicroStepTest(TestCase):
    def test_backward_passes_are_added_up(self):
        model = made(network)
        expected = copy.deepcopy(model)

        def summed(model, rank, step):
            return sum(point_loss(model, rank, 3 * step + part) for part in range(3))

        losses = plain(expected, summed, 3)

        def body(group, stage, kind):
            mine = copy.deepcopy(model)
            optimizer = ShardedOptimizer(mine, stage=stage, group=group, lr=1e-2)
            for step in range(3):
                with getattr(optimizer, kind)():
                    parts = [point_loss(mine, group.rank, 3 * step + part) for part in range(2)]
                    for part in parts:
                        part.backward()
                last = point_loss(mine, group.rank, 3 * step + 2)
                last.backward()
                optimizer.step()
                optimizer.zero_grad()
                self.assertAlmostEqual(sum(parts).item() + last.item(), losses[step][group.rank], delta=1e-5)
            optimizer.close()

        for stage in STAGES:
            for kind in ("no_sync", "accumulate"):
                ranks.run(2, lambda group, stage=stage, kind=kind: body(group, stage, kind))

    def test_zero_grad_drops_what_was_given(self):
        model = made(network)
        expected = sharded(model, point_loss, 3, 3)

        def body(group, stage):
            mine = copy.deepcopy(model)
            optimizer = ShardedOptimizer(mine, stage=stage, group=group, lr=1e-2)
            for step in range(3):
                point_loss(mine, group.rank, 10 + step).backward()
                optimizer.zero_grad()
                point_loss(mine, group.rank, step).backward()
                optimizer.step()
            with optimizer.gathered():
                return [p.detach().clone() for p in mine.parameters()]

        for stage in STAGES:
            for rank, values in enumerate(ranks.run(2, lambda group, stage=stage: body(group, stage))):
                self.assertTrue(all(map(torch.equal, values, expected[rank][1])))

    def test_the_tier_of_a_device_is_for_other_optimizers(self):
        with ranks.alone() as group, self.assertRaisesRegex(ValueError, "lie on the host here; use libzero.Optimizer"):
            ShardedOptimizer(made(network), group=group, device=0, tier=Tier.DEVICE)

    def test_a_second_backward_in_a_step_is_an_error_that_names_the_parameter(self):
        for stage in STAGES:
            with ranks.alone() as group:
                model = made(network)
                optimizer = ShardedOptimizer(model, stage=stage, group=group)
                point_loss(model, 0, 0).backward()
                with self.assertRaisesRegex(RuntimeError, r"gradient of 3\.bias comes behind .*no_sync"):
                    point_loss(model, 0, 1).backward()
                with optimizer.no_sync(), self.assertRaisesRegex(RuntimeError, r"3\.bias comes behind"):
                    point_loss(model, 0, 1).backward()
                optimizer.zero_grad()
                point_loss(model, 0, 0).backward()
                optimizer.step()
                optimizer.close()

    def test_the_loss_scale_is_libzeros(self):
        model = made(network)
        expected = sharded(model, point_loss, 2, 2)
        for stage in STAGES:
            scaled = copy.deepcopy(model)

            def body(group, scaled=scaled, stage=stage):
                mine = copy.deepcopy(scaled)
                optimizer = ShardedOptimizer(mine, stage=stage, group=group, lr=1e-2, loss_scale_dynamic=1)
                self.assertEqual(optimizer.scale(torch.ones(())), 2**16)
                for step in range(2):
                    optimizer.scale(point_loss(mine, group.rank, step)).backward()
                    optimizer.step()
                with optimizer.gathered():
                    return [p.detach().clone() for p in mine.parameters()]

            for rank, values in enumerate(ranks.run(2, body)):
                self.assertTrue(close(values, expected[rank][1]))
        with ranks.alone() as group:
            model = made(network)
            optimizer = ShardedOptimizer(model, stage=1, group=group)
            scaler = torch.amp.GradScaler("cpu")
            scaler.scale(point_loss(model, 0, 0)).backward()
            with self.assertRaisesRegex(RuntimeError, "GradScaler sees no gradients .* loss_scale_dynamic=1"):
                scaler.step(optimizer)


if __name__ == "__main__":
    unittest.main()
