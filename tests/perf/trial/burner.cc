// Work that divides as its names say, four to one, for the profiler of servers that are no JVM.
namespace db {
volatile unsigned long sink;

__attribute__((noinline)) void burn(unsigned long rounds) {
    for (unsigned long round = 0; round < rounds; ++round) sink = sink + round;
}

template <typename Size>
__attribute__((noinline)) void heavy(Size size) { burn(4 * size); sink = sink + 1; }

namespace {
__attribute__((noinline)) void light(unsigned long size) { burn(size); sink = sink + 1; }
}

void serve() {
    for (;;) { heavy<unsigned long>(1000000); light(1000000); }
}
}

int main() { db::serve(); }
