/// @file In coverage builds _exit first writes the counters, so that those of ranks that are processes are not lost. Nothing else of exit
/// is done: threads may hold what it would wait for.

void __gcov_dump(void);
_Noreturn void __real__exit(int code);

_Noreturn void __wrap__exit(int code);
_Noreturn void __wrap__exit(int code) {
  __gcov_dump();
  __real__exit(code);
}
