//! Compilers and build tools.

use super::{Scenario, leaves, prints};

const TWO_FILES: &str = "mkdir src include; \
    printf '#include \"f.h\"\\n#include <stdio.h>\\nint main(void){printf(\"%%d\\\\n\", f(7));return 0;}\\n' > src/main.c; \
    printf '#include \"f.h\"\\nint f(int a){return a*6;}\\n' > src/f.c; echo 'int f(int);' > include/f.h";

pub(super) const ALL: &[Scenario] = &[
    leaves(
        "gcc with dependencies, a shared library and an archive",
        &["gcc", "ar"],
        TWO_FILES,
        "gcc -Iinclude -MMD -g -fPIC -c src/f.c -o f.o && gcc -shared -o libf.so f.o && ar rcs libf.a f.o && \
         gcc -Iinclude src/main.c -L. -lf -Wl,-rpath,'$ORIGIN' -o shared && ./shared && \
         gcc -Iinclude src/main.c libf.a -o archive && ./archive && strip archive && ./archive && \
         gcc -pipe -O2 -flto -Iinclude src/*.c -o whole && ./whole && nm whole > /dev/null && ldd shared | grep -c libf",
        "ls; cat f.d",
    ),
    prints(
        "make with parallel jobs that share a job server",
        &["make", "gcc"],
        "mkdir sub; printf 'all: $(foreach n,1 2 3 4 5 6 7 8,o/$(n))\\n\\t+$(MAKE) -C sub\\no/%%: | o\\n\\tsleep 0.05; echo $* > $@\\no:\\n\\tmkdir o\\n' > Makefile; \
         printf 'all: a b c\\na b c:\\n\\ttouch $@\\n' > sub/Makefile; make -s -j4 && cat o/* && ls sub && make -s -j4; \
         make --jobserver-style=fifo -s -j3 -C sub -B 2> /dev/null; echo $?",
    ),
    prints(
        "cmake and ninja",
        &["cmake", "ninja", "gcc"],
        "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(p C)\\nadd_executable(p m.c)\\nenable_testing()\\nadd_test(NAME t COMMAND p)\\ninstall(TARGETS p)\\n' > CMakeLists.txt; \
         echo 'int main(void){return 0;}' > m.c; cmake -G Ninja -B b -DCMAKE_INSTALL_PREFIX=$PWD/i > log 2>&1 && ninja -C b | tail -1 | cut -c1-5 && \
         ninja -C b | tail -1 && (cd b && ctest > ../tests && grep -c '100% tests passed' ../tests) && cmake --install b > /dev/null && ls i/bin",
    ),
    prints(
        "cmake with make",
        &["cmake", "make", "g++"],
        "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(p CXX)\\nadd_library(l STATIC l.cc)\\nadd_executable(p m.cc)\\ntarget_link_libraries(p l)\\n' > CMakeLists.txt; \
         echo '#include <string>\nstd::string s(){return \"linked\";}' > l.cc; echo '#include <iostream>\n#include <string>\nstd::string s(); int main(){std::cout << s() << std::endl;}' > m.cc; \
         cmake -B b > /dev/null && make -s -j2 -C b > /dev/null && b/p",
    ),
    prints(
        "programs that were just written are executed",
        &["gcc"],
        "for n in 1 2 3 4 5; do printf '#!/bin/sh\\necho %s\\n' $n > s; chmod +x s; ./s; \
         echo \"int main(void){return $n;}\" > c.c; gcc c.c -o c; ./c; echo $?; done",
    ),
    prints(
        "the compiler's cache in the project",
        &["ccache", "gcc"],
        "export CCACHE_DIR=$PWD/cache; echo 'int x;' > a.c; ccache gcc -c a.c && ccache gcc -c a.c && \
         ccache -s | grep -ci hits > /dev/null && ls a.o",
    ),
    prints(
        "the order of tests of a shell",
        &["bats"],
        "printf '@test \"adds\" {\\n  [ $((1+1)) -eq 2 ]\\n}\\n@test \"runs\" {\\n  run ls\\n  [ $status -eq 0 ]\\n}\\n' > t.bats; bats -t t.bats",
    ),
    prints(
        "scripts are checked",
        &["shellcheck"],
        "printf '#!/bin/sh\\necho $1\\n' > s.sh; shellcheck -f gcc s.sh | cut -d: -f1,2; true",
    ),
    prints(
        "autoconf's habits: a configure script",
        &["gcc", "make"],
        "cat > configure <<'E'\n#!/bin/sh\ntest -t 1 && echo terminal\nas_dir=.; exec 5>config.log; exec 6>&1\n\
         for n in 1 2 3; do echo 'int main(void){return 0;}' > conftest.c; gcc conftest.c -o conftest >&5 2>&1 && ./conftest && echo check $n >&6; rm -f conftest*; done\n\
         (umask 077; mkdir conf$$dir && rmdir conf$$dir); ln -s configure conf$$ && rm conf$$ && echo links >&6\n\
         cat > config.status <<'X'\n#!/bin/sh\nsed s/@A@/b/ < Makefile.in > Makefile\nX\nchmod +x config.status; exec ./config.status\nE\n\
         chmod +x configure; printf 'all:\\n\\t@echo @A@\\n' > Makefile.in; ./configure && make",
    ),
];
