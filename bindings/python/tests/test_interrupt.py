"""Ctrl-C while a call waits for other ranks: Python sees it behind the call, and what the call did stands."""

import _thread
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import handles
import numpy as np
import ranks
from failing import TestCase
from libzero import Buffer, Config, Group, Optimizer, Source, Status
from libzero.library import zero

SECONDS = 0.2  # for this thread to be within the call


class InterruptTest(TestCase):
    def interrupted(self, call, other):
        """Makes a call that waits for `other`, which another thread calls once this one was interrupted."""

        def come_late():
            time.sleep(SECONDS)
            _thread.interrupt_main()
            other()

        thread = threading.Thread(target=come_late)
        thread.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                call()
        finally:
            thread.join()

    def pair(self):
        """Both ranks of a group."""
        name = ranks.group_name()
        return on_both(range(2), lambda rank: Group.local(name, rank, 2))

    def optimizers(self):
        """One of a parameter on each rank, sealed."""
        with Config(stage=3) as config:
            optimizers = [Optimizer(group, config) for group in self.pair()]
        for optimizer in optimizers:
            optimizer.add_param("w", (1000,))
        on_both(optimizers, Optimizer.seal)
        return optimizers

    def test_what_was_made_is_given_back(self):
        before = handles.live()
        name, theirs = ranks.group_name(), []
        self.interrupted(lambda: Group.local(name, 0, 2), lambda: theirs.append(Group.local(name, 1, 2)))
        self.assertEqual(handles.live(), before + 1)
        groups = self.pair()
        self.interrupted(lambda: Buffer(groups[0], 10), lambda: theirs.append(Buffer(groups[1], 10)))
        self.assertEqual(handles.live(), before + 4)

    def test_an_acquired_parameter_has_a_release_of_its_own(self):
        mine, theirs = self.optimizers()
        on_both((mine, theirs), lambda optimizer: optimizer.begin(Source.LOCAL))
        dst = np.ones(1000, np.float32)
        self.interrupted(lambda: mine.param_acquire(0, dst), lambda: theirs.param_acquire(0))
        place = dst.__array_interface__["data"][0]
        del dst
        on_both((mine, theirs), lambda optimizer: optimizer.param_acquire(0))
        mine.param_release(0)
        self.assertEqual(mine._acquired[0][0].__array_interface__["data"][0], place)
        mine.param_release(0)
        self.assertEqual(mine._acquired, {0: []})

    def test_registrations_that_are_interrupted_shift_no_others(self):
        with ranks.alone() as group, Optimizer(group) as optimizer:
            for add in ("zero_optimizer_add_param", "zero_optimizer_add_module_buffer"):
                with mock.patch.object(zero, add, interrupt_behind(getattr(zero, add))), self.assertRaises(KeyboardInterrupt):
                    getattr(optimizer, add.replace("zero_optimizer_", ""))(add, 3)
            self.assertEqual((optimizer.add_param("w", (2, 5)), optimizer.add_module_buffer("m", (4, 2))), (1, 1))
            optimizer.seal()
            optimizer.begin(Source.LOCAL)
            self.assertEqual((optimizer.param_acquire(1).shape, optimizer.module_buffer(1).shape), ((2, 5), (4, 2)))
            self.assertEqual([param.name for param in optimizer.params], ["w"])
            self.assertIn("parameter 0: its add_param was interrupted", self.fails(Status.E_STATE, optimizer.param_acquire, 0).text)

    def test_parameters_are_read_only_behind_begin(self):
        mine, theirs = self.optimizers()
        self.interrupted(lambda: mine.begin(Source.LOCAL), lambda: theirs.begin(Source.LOCAL))
        found = on_both((mine, theirs), lambda optimizer: optimizer.param_acquire(0).flags.writeable)
        self.assertEqual(found, [False, False])


def interrupt_behind(call):
    """The call, whose result is lost to a Ctrl-C."""

    def interrupted(*arguments):
        call(*arguments)
        raise KeyboardInterrupt

    return interrupted


def on_both(objects, call):
    """What call(object) returns for each rank's."""
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(call, objects))
