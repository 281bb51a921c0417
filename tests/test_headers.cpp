/// @file A program of which only the precompiled header is used (CMakeLists.txt): CMake makes one for a target with a source.
int main() { return 0; }
