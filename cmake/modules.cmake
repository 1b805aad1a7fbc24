# SPDX-License-Identifier: Apache-2.0
# tidings_module(): one static library per module. tidings_embed(): files of migrations/ and web/ as C data.

# Makes tidings_NAME of src/NAME/*.c. A module without sources yet is an interface of the same name.
function(tidings_module name)
    cmake_parse_arguments(arg "" "" "USES;LIBRARIES" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
    list(TRANSFORM arg_USES PREPEND tidings_)
    if(sources)
        add_library(tidings_${name} STATIC ${sources})
        set(scope PUBLIC)
    else()
        add_library(tidings_${name} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_include_directories(tidings_${name} ${scope} ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(tidings_${name} ${scope} ${arg_USES} ${arg_LIBRARIES})
    set_property(GLOBAL APPEND PROPERTY TIDINGS_MODULES tidings_${name})
endfunction()

# Makes the library TARGET that defines what include/base/embedded.h declares.
function(tidings_embed target)
    set(script ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
    set(output ${CMAKE_BINARY_DIR}/embedded.c)
    file(GLOB migrations CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/migrations/*.sql)
    file(GLOB functions CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/migrations/redis/*.lua)
    file(GLOB web CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/*)
    # The file's own list is a dependency too: a file that was removed must go from the output.
    set(list ${CMAKE_BINARY_DIR}/embedded.list)
    file(CONFIGURE OUTPUT ${list} CONTENT "${migrations}\n${functions}\n${web}\n")
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${CMAKE_SOURCE_DIR} -D OUTPUT=${output} -P ${script}
        DEPENDS ${migrations} ${functions} ${web} ${list} ${script}
        COMMENT "Embedding migrations and web"
        VERBATIM)
    add_library(${target} STATIC ${output})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include)
endfunction()
