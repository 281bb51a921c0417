"""Memory, evaluation, state and errors of libzero.torch. Ranks are threads of this program."""

import copy
import tempfile
import unittest

import ranks
from failing import TestCase
from torch_models import STAGES, Transformer, close, functional, made, network, nn, plain, point_loss, sharded, torch, word_loss

from libzero.torch import ShardedOptimizer
from libzero.torch_units import Released


class MemoryTest(TestCase):
    def test_parameters_of_stages_0_to_2_lie_where_the_library_has_them(self):
        for stage in (0, 1, 2):
            with ranks.alone() as group:
                model = made(network)
                optimizer = ShardedOptimizer(model, stage=stage, group=group)
                for _ in range(2):
                    for number, parameter in enumerate(model.parameters()):
                        self.assertEqual(optimizer.optimizer.param_acquire(number).ctypes.data, parameter.data_ptr())
                        optimizer.optimizer.param_release(number)
                    point_loss(model, 0, 0).backward()
                    self.assertTrue(all(p.grad is None for p in model.parameters()))
                    optimizer.step()

    def test_parameters_of_stage_3_have_storage_only_while_they_are_used(self):
        seen, gone = [], []

        def layers():
            return nn.Sequential(*(nn.Linear(6, 6) for _ in range(6)))

        def body(group):
            model = made(layers)
            optimizer = ShardedOptimizer(model, stage=3, group=group)
            numbers = {parameter: number for number, parameter in enumerate(model.parameters())}

            def look(module, *_):
                for parameter in module.parameters(recurse=False):
                    again = optimizer.optimizer.param_acquire(numbers[parameter])
                    seen.append(again.ctypes.data == parameter.data_ptr() != 0)
                    optimizer.optimizer.param_release(numbers[parameter])
                gone.append([p.nbytes for p in held(model)])

            def held(module):
                return [p for p in module.parameters() if p.untyped_storage().nbytes()]

            for module in model:
                module.register_forward_hook(look, prepend=True)
            for parameter in model.parameters():
                parameter.register_post_accumulate_grad_hook(lambda _: gone.append([p.nbytes for p in held(model)]))
            for step in range(2):
                point_loss(model, group.rank, step).backward()
                self.assertEqual(held(model), [])
                optimizer.step()
            self.assertEqual({type(p) for p in model.parameters()}, {Released})
            optimizer.close()

        most = max(sum(p.nbytes for p in module.parameters()) for module in layers())
        ranks.run(2, body)
        self.assertTrue(seen and all(seen))
        self.assertLessEqual(max(map(sum, gone)), 2 * most)

    def test_the_end_of_backward_releases_modules_that_did_not_use_all_their_parameters(self):
        class Partly(nn.Linear):
            def __init__(self):
                super().__init__(6, 3)
                self.left = nn.Parameter(torch.ones(3))

        with ranks.alone() as group:
            model = nn.Sequential(Partly())
            ShardedOptimizer(model, stage=3, group=group)
            point_loss(model, 0, 0).backward()
            self.assertEqual({type(p) for p in model.parameters()}, {Released})

    def test_bytes_are_those_of_the_formula(self):
        def make():
            return nn.Sequential(*(nn.Linear(256, 256, bias=False) for _ in range(8)))

        def loss(model, rank, step):
            return model(torch.full((2, 256), 0.1 * (1 + rank + step))).square().mean()

        count = 8 * 256 * 256
        for stage, formula in zip(STAGES, (16, 8 + 8 / 2, 4 + 12 / 2, 16 / 2)):
            for *_, memory in sharded(made(make), loss, 2, stage, then=lambda o, m: o.optimizer.memory()):
                self.assertEqual(memory.formula_nbytes, formula * count + 8 * 8)  # and an update count per tensor
                self.assertLessEqual(memory.now_nbytes, memory.formula_nbytes + memory.constant_nbytes)

    def test_a_parameter_that_was_given_away_is_not_released(self):
        class Exporting(nn.Linear):
            def forward(self, x):
                self.array = self.weight.detach().numpy()
                return super().forward(x)

        with ranks.alone() as group:
            model = nn.Sequential(Exporting(6, 3))
            ShardedOptimizer(model, stage=3, group=group)
            with self.assertRaisesRegex(BufferError, r"parameter 0\.weight cannot be released.*clone"):
                point_loss(model, 0, 0)


class EvaluationTest(TestCase):
    def test_without_gradients(self):
        x = torch.arange(32).reshape(4, 8)
        model = made(Transformer)
        expected = copy.deepcopy(model)
        plain(expected, word_loss, 2)

        def evaluate(optimizer, mine):
            with torch.no_grad():
                found = [mine(x), mine.eval()(x), optimizer.gathered(mine.head) and mine.train()(x)]
            if optimizer._streamed:
                self.assertEqual({type(p) for p in mine.parameters()}, {Released})
            return found

        with torch.no_grad():
            logits = expected(x)
        for stage in STAGES:
            for *_, found in sharded(model, word_loss, 2, stage, then=evaluate):
                self.assertTrue(close(found, [logits] * 3, 1e-4))

    def test_a_released_parameter_says_its_name_and_what_to_do(self):
        with ranks.alone() as group:
            model = made(network)
            optimizer = ShardedOptimizer(model, stage=3, group=group)
            weight = model[0].weight
            self.assertEqual((weight.shape, weight.dtype, weight.requires_grad), ((16, 6), torch.float32, True))
            self.assertIn("0.weight", repr(weight))
            for use in (lambda: weight + 1, lambda: functional.linear(torch.ones(6), weight), lambda: weight.data, model.state_dict):
                with self.assertRaisesRegex(RuntimeError, r"0\.weight, which is sharded.*gathered"):
                    use()
            with optimizer.gathered(weight):
                self.assertEqual((weight * 0).sum(), 0)
            self.assertIs(type(weight), Released)


class StateTest(TestCase):
    def test_a_run_goes_on_with_other_ranks_in_another_stage(self):
        model = made(lambda: nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 3)))
        with tempfile.TemporaryDirectory() as folder:
            schedule = 0.005

            def save(optimizer, mine):
                optimizer.param_groups[0]["lr"] = schedule
                optimizer.optimizer.set_f64("lr", schedule, 1)
                optimizer.save(folder)
                with optimizer.gathered():
                    return [p.detach().clone() for p in mine.parameters()], mine[1].running_mean.clone()

            (*_, (values, mean)), _ = sharded(model, point_loss, 3, 3, then=save)

            def body(group, stage):
                mine = made(lambda: copy.deepcopy(model), 5)
                optimizer = ShardedOptimizer(mine, stage=stage, group=group, lr=1e-2)
                self.assertTrue(optimizer.load(folder))
                self.assertEqual(optimizer.param_groups[0]["lr"], schedule)
                self.assertEqual(optimizer.optimizer.get_i64("step_count"), 3)
                self.assertTrue(torch.equal(mine[1].running_mean, mean))
                with optimizer.gathered():
                    self.assertTrue(all(map(torch.equal, mine.parameters(), values)))
                loss = point_loss(mine, 0, 7)
                loss.backward()
                optimizer.step()
                optimizer.close()
                return loss.item()

            for size, stage in ((1, 0), (1, 3), (3, 2), (3, 3), (2, 1)):
                self.assertEqual(len(set(ranks.run(size, lambda group, stage=stage: body(group, stage)))), 1)
            with tempfile.TemporaryDirectory() as empty, ranks.alone() as group:
                self.assertFalse(ShardedOptimizer(copy.deepcopy(model), stage=1, group=group).load(empty))

    def test_state_dict_is_the_shard_of_this_rank(self):
        model = made(network)
        expected = sharded(model, point_loss, 4, 2)
        for stage in STAGES:
            states = [found for *_, found in sharded(model, point_loss, 2, stage, then=lambda o, m: copy.deepcopy(o.state_dict()))]
            counts = [sum(slots["param"][1].numel() for slots in state["state"]["pieces"].values()) for state in states]
            whole = sum(p.numel() for p in model.parameters())
            self.assertEqual(sum(counts), whole * (2 if stage == 0 else 1))

            def body(group, stage=stage, states=states):
                mine = made(network, 9)
                optimizer = ShardedOptimizer(mine, stage=stage, group=group)
                with self.assertRaisesRegex(ValueError, "rank . of 2.*save"):
                    optimizer.load_state_dict(states[1 - group.rank])
                optimizer.load_state_dict(states[group.rank])
                for step in (2, 3):
                    point_loss(mine, group.rank, step).backward()
                    optimizer.step()
                with optimizer.gathered():
                    return [p.detach().clone() for p in mine.parameters()]

            for rank, values in enumerate(ranks.run(2, body)):
                self.assertTrue(all(map(torch.equal, values, expected[rank][1])))

    def test_a_module_on_meta_gets_its_values_module_by_module(self):
        with torch.device("meta"):
            model = Transformer()
            points = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))

        def init(module):
            for parameter in module.parameters(recurse=False):
                nn.init.normal_(parameter, std=0.1)

        def body(group, stage):
            found = []
            for what, loss, how in ((copy.deepcopy(points), point_loss, None), (copy.deepcopy(model), word_loss, init)):
                optimizer = ShardedOptimizer(what, stage=stage, group=group, init=how, lr=1e-2)
                losses = []
                for step in range(8):
                    losses.append(loss(what, group.rank, 0))
                    losses[-1].backward()
                    optimizer.step()
                self.assertLess(losses[-1].item(), losses[0].item())
                with optimizer.gathered():
                    found += [p.detach().clone() for p in what.parameters()]
                optimizer.close()
            return found

        for stage in STAGES:
            one, two = ranks.run(2, lambda group, stage=stage: body(group, stage))
            self.assertTrue(all(map(torch.equal, one, two)))
        with ranks.alone() as group, self.assertRaisesRegex(TypeError, "Transformer are on meta, .*give `init`"):
            ShardedOptimizer(model, group=group)


class RefusedTest(TestCase):
    def test_what_libzero_cannot_take(self):
        class Holder(nn.Module):
            def __init__(self, dtype):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(3, dtype=torch.float32))
                self.codes = nn.Parameter(torch.zeros(3, dtype=dtype), requires_grad=False)

        with ranks.alone() as group:
            for dtype in (torch.uint16, torch.float64, torch.int8):
                with self.assertRaisesRegex(TypeError, f"parameter codes is {dtype}"):
                    ShardedOptimizer(Holder(dtype), group=group)
            model = made(network)
            with self.assertRaisesRegex(ValueError, r"shape \(3,\) is in a parameter group, but not in the module"):
                ShardedOptimizer(model, [nn.Parameter(torch.ones(3))], group=group)
            with self.assertRaisesRegex(Exception, "(?i)momentum"):
                ShardedOptimizer(model, group=group, momentum=0.9)
            optimizer = ShardedOptimizer(model, group=group, grad_norm=0)
            with self.assertRaisesRegex(RuntimeError, "no further parameter groups"):
                optimizer.add_param_group({"params": [nn.Parameter(torch.ones(3))]})
            with self.assertRaisesRegex(RuntimeError, "grad_norm=0"):
                optimizer.clip_grad_norm_(1.0)
            sparse = nn.Embedding(4, 2, sparse=True)
            ShardedOptimizer(sparse, group=group, stage=1)
            with self.assertRaisesRegex(TypeError, "gradient of weight is sparse"):
                sparse(torch.tensor([1])).sum().backward()


if __name__ == "__main__":
    unittest.main()
