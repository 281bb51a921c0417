/// @file scenarios: the parts of the conformance list, in its order; each prints its lines.
#pragma once

void library_scenarios(void);
void group_scenarios(void);
void buffer_scenarios(void);
void server_scenarios(void);
void optimizer_scenarios(void);
void save_scenarios(void);
void misuse_scenarios(void);
void print_tables(void);
