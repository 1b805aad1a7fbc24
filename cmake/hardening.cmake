# SPDX-License-Identifier: Apache-2.0
# Warnings, hardening and sanitizers for every target. Each flag is probed: what a compiler does not
# know is left out, so that a newer one gets the whole list.

include(CheckCCompilerFlag)
include(CheckIPOSupported)
include(CheckLinkerFlag)
include(CheckPIESupported)

# Without -DNDEBUG: assertions stay on in what is shipped.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g") # for short edits: the least that _FORTIFY_SOURCE needs
set(CMAKE_C_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()

set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_pie_supported(LANGUAGES C)

# What is shipped is optimised across modules: 5 % more posts/s, 5 % less CPU for each.
check_ipo_supported(RESULT TIDINGS_LINK_TIME_OPTIMISATION LANGUAGES C)
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION_RELEASE ${TIDINGS_LINK_TIME_OPTIMISATION})
# Objects hold plain code as well, for the unit tests: to optimise the modules anew in each of them took most of a build's time.
list(TRANSFORM CMAKE_C_COMPILE_OPTIONS_IPO REPLACE "^-fno-fat-lto-objects$" "-ffat-lto-objects")
add_compile_definitions(_GNU_SOURCE)

function(tidings_compile_flags)
    foreach(flag IN LISTS ARGN)
        string(MAKE_C_IDENTIFIER "HAVE${flag}" known)
        set(CMAKE_REQUIRED_FLAGS -Wall) # without it -Werror=format-security is refused
        check_c_compiler_flag(${flag} ${known})
        if(${known})
            add_compile_options(${flag})
        endif()
    endforeach()
endfunction()

function(tidings_link_flags)
    foreach(flag IN LISTS ARGN)
        string(MAKE_C_IDENTIFIER "HAVE_LINK${flag}" known)
        check_linker_flag(C ${flag} ${known})
        if(${known})
            add_link_options(${flag})
        endif()
    endforeach()
endfunction()

tidings_compile_flags(
    -Wall -Wextra -Wpedantic -Wformat=2 -Wconversion -Wsign-conversion -Wimplicit-fallthrough -Wshadow
    -Wstrict-prototypes -Wmissing-prototypes -Wtrampolines -Wbidi-chars=any
    -Werror=format-security -Werror=implicit -Werror=incompatible-pointer-types
    -Werror=int-conversion)
if(TIDINGS_WERROR)
    tidings_compile_flags(-Werror)
endif()

tidings_compile_flags(
    -fstrict-flex-arrays=3 -fstack-clash-protection -fstack-protector-strong
    -fzero-init-padding-bits=all -ftrivial-auto-var-init=zero -fno-delete-null-pointer-checks
    -fno-strict-overflow -fno-strict-aliasing -fexceptions)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    tidings_compile_flags(-fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    tidings_compile_flags(-mbranch-protection=standard)
endif()

tidings_link_flags(
    -Wl,-z,nodlopen -Wl,-z,noexecstack -Wl,-z,relro -Wl,-z,now
    -Wl,--as-needed -Wl,--no-copy-dt-needed-entries)

if(TIDINGS_SANITIZE STREQUAL "")
    # Needs the optimiser, and hides from ASan what it intercepts: release only.
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
elseif(TIDINGS_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
    add_link_options(-fsanitize=address,undefined)
elseif(TIDINGS_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread)
    add_link_options(-fsanitize=thread)
elseif(TIDINGS_SANITIZE STREQUAL "fuzzer")
    # Clang's. What the code is warned of is gcc's to say; that integers overflow, the sanitizer's.
    add_compile_options(-w -fno-wrapv -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
    add_link_options(-fsanitize=address,undefined)
else()
    message(FATAL_ERROR "TIDINGS_SANITIZE must be empty, address, thread or fuzzer")
endif()
