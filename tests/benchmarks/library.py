"""Calls of libzero from the programs that compare it with PyTorch. Knows the C functions' errors; never tensors."""
import ctypes


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)

    def make(self, name, *arguments):
        handle = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(handle))
        return handle

    def call(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status != 0:
            text = ctypes.create_string_buffer(1024)
            self.lib.zero_last_error_copy(text, ctypes.c_int64(1024))
            raise SystemExit(f"{name}: {text.value.decode()}")
