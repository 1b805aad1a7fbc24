// SPDX-License-Identifier: Apache-2.0
// Part of each unit test: one that hangs ends, and shows where its first thread was. ctest's own
// bound is a little later, and shows nothing.
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { FRAMES_MAX = 64 };

// Only with a sanitizer, which knows files and lines.
__attribute__((weak)) void __sanitizer_print_stack_trace(void);

static void on_alarm(int signal)
{
    (void)signal;
    static const char text[] = "\nwatchdog: this test hangs. Its first thread is here:\n";
    void *frames[FRAMES_MAX];
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    if (__sanitizer_print_stack_trace)
        __sanitizer_print_stack_trace();
    else
        backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
    abort();
}

__attribute__((constructor)) static void watch(void)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    (void)sigaction(SIGALRM, &action, NULL);
    (void)alarm(WATCHDOG_S);
}
