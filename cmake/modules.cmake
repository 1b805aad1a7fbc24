# SPDX-License-Identifier: Apache-2.0
# tidings_module(): one static library per module. tidings_embed(): files as C data.

# Makes tidings_NAME of the .c files below src/NAME. A module without sources yet is an interface of the same name.
function(tidings_module name)
    cmake_parse_arguments(arg "" "" "USES;LIBRARIES" ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
    list(TRANSFORM arg_USES PREPEND tidings_)
    if(sources)
        add_library(tidings_${name} STATIC ${sources})
        set(scope PUBLIC)
    else()
        add_library(tidings_${name} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_include_directories(tidings_${name} ${scope} ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include)
    target_link_libraries(tidings_${name} ${scope} ${arg_USES} ${arg_LIBRARIES})
    if(TIDINGS_SANITIZE STREQUAL "address")
        tidings_torture_module(tidings_${name})
    endif()
    set_property(GLOBAL APPEND PROPERTY TIDINGS_MODULES tidings_${name})
endfunction()

# Lets what the module allocates, and its system calls, fail when a test of tests/torture says so: the calls in its library get other
# names.
function(tidings_torture_module target)
    if(NOT TARGET tidings_torture)
        add_library(tidings_torture STATIC ${CMAKE_SOURCE_DIR}/tests/torture/torture.c)
    endif()
    target_link_libraries(${target} PUBLIC tidings_torture)
    add_custom_command(TARGET ${target} POST_BUILD
        COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${CMAKE_SOURCE_DIR}/tests/torture/symbols $<TARGET_FILE:${target}> VERBATIM)
endfunction()

# Makes the library TARGET that defines what include/base/embedded.h declares.
function(tidings_embed target)
    set(script ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
    set(output ${CMAKE_BINARY_DIR}/embedded.c)
    file(GLOB migrations CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/migrations/*.sql)
    file(GLOB functions CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sql/*.sql)
    file(GLOB redis_functions CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lua/*.lua)
    file(GLOB web CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/*)
    tidings_openapi(openapi)
    tidings_reference(reference)
    # The file's own list is a dependency too: a file that was removed must go from the output.
    set(list ${CMAKE_BINARY_DIR}/embedded.cmake)
    file(CONFIGURE OUTPUT ${list} CONTENT "set(migrations \"${migrations}\")\nset(functions \"${functions}\")
set(redis_functions \"${redis_functions}\")
set(web \"${web}\")\nset(openapi \"${openapi}\")\nset(reference \"${reference}\")\n")
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -D LIST=${list} -D OUTPUT=${output} -P ${script}
        DEPENDS ${migrations} ${functions} ${redis_functions} ${web} ${openapi} ${reference} ${list} ${script}
        COMMENT "Embedding files"
        VERBATIM)
    add_library(${target} STATIC ${output})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include)
endfunction()

# Makes the forms of openapi/tidings.yaml that are served; their paths in ret_files.
function(tidings_openapi ret_files)
    set(directory ${CMAKE_BINARY_DIR}/openapi)
    set(files ${directory}/openapi.json ${directory}/openapi-3.0.json)
    add_custom_command(
        OUTPUT ${files}
        COMMAND ${Python3_EXECUTABLE} -m tools.openapi ${directory}
        DEPENDS ${CMAKE_SOURCE_DIR}/openapi/tidings.yaml ${CMAKE_SOURCE_DIR}/tools/openapi.py
                ${CMAKE_SOURCE_DIR}/tools/openapi_expand.py
        WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
        COMMENT "Writing openapi.json"
        VERBATIM)
    set(${ret_files} ${files} PARENT_SCOPE)
endfunction()

# The page at /docs; its paths in ret_files. It needs the bundle that tools/reference.py brings into build/reference:
# without that the page is one that says so.
function(tidings_reference ret_files)
    file(GLOB bundle CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/build/reference/redoc.*)
    if(bundle)
        file(GLOB page CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/openapi/reference/*)
    else()
        message(STATUS "There is no build/reference: /docs will only say so (python3 -m tools.reference brings it)")
        set(page ${CMAKE_SOURCE_DIR}/openapi/without-reference/index.html)
    endif()
    set(${ret_files} ${page} ${bundle} PARENT_SCOPE)
endfunction()
