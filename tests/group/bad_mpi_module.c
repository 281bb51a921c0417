/// @file MPI modules that libzero must refuse, one per value of BAD: another build, no build, a table of another size, no table, a foreign
/// MPI.
#include "group/module/zero_mpi_module.h"

#define BAD_BUILD 1
#define BAD_NO_BUILD 2
#define BAD_SIZE 3
#define BAD_NO_TABLE 4
#define BAD_MPI 5

__attribute__((visibility("default"))) const zero_mpi_table *zero_mpi_module(void);
const zero_mpi_table *zero_mpi_module(void) {
  static zero_mpi_table table;
  table.struct_size = BAD == BAD_SIZE ? sizeof table - 8 : sizeof table;
  table.build = BAD == BAD_BUILD ? "libzero 0.0.0" : BAD == BAD_NO_BUILD ? 0 : ZERO_MPI_BUILD;
  return BAD == BAD_NO_TABLE ? 0 : &table;
}

#if BAD == BAD_MPI
/* As a program that is linked to one MPI and loads a module that was built with another would find. */
__attribute__((visibility("default"))) int MPI_Init_thread(void);
int MPI_Init_thread(void) { return 0; }
#endif
