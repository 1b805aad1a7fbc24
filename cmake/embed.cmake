# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C file that defines the tables of include/base/embedded.h from SOURCE_DIR/migrations
# and SOURCE_DIR/web.

set(text "// SPDX-License-Identifier: Apache-2.0\n// Made by cmake/embed.cmake: do not edit.\n")
string(APPEND text "#include \"base/embedded.h\"\n")

# Appends to `text` the table NAME of the files that match PATTERN, by name.
function(embed name pattern)
    file(GLOB files ${SOURCE_DIR}/${pattern})
    list(SORT files COMPARE FILE_BASENAME)
    list(LENGTH files count)
    set(entries "")
    set(index 0)
    foreach(file IN LISTS files)
        file(READ ${file} bytes HEX)
        string(LENGTH "${bytes}" length)
        math(EXPR length "${length} / 2")
        string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
        string(REGEX REPLACE "(................................................................................)"
               "\\1\n" bytes "${bytes}")
        string(APPEND text "\nstatic const unsigned char ${name}_${index}[] = {\n${bytes}0};\n")
        get_filename_component(base ${file} NAME)
        string(APPEND entries "    {\"${base}\", (const char *)${name}_${index}, ${length}},\n")
        math(EXPR index "${index} + 1")
    endforeach()
    string(APPEND text "\nconst struct embedded_file ${name}[] = {\n${entries}    {0},\n};\n")
    string(APPEND text "const size_t ${name}_count = ${count};\n")
    set(text "${text}" PARENT_SCOPE)
endfunction()

embed(embedded_migrations migrations/*.sql)
embed(embedded_redis_functions migrations/redis/*.lua)
embed(embedded_web web/*)
file(WRITE ${OUTPUT} "${text}")
