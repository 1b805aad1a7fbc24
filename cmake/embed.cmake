# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C file that defines the tables of include/base/embedded.h. LIST is a CMake file that sets, for each
# table, the files in it. Files of Redis functions become libraries "<name>_<hash>", by the first digits of their SHA-256.

include(${LIST})
set(text "// SPDX-License-Identifier: Apache-2.0\n// Made by cmake/embed.cmake: do not edit.\n")
string(APPEND text "#include \"base/embedded.h\"\n")

# Appends to `text` the table NAME of the given files, by name. The assembler reads them: a compiler
# takes seconds for a megabyte that is spelt out.
function(embed name)
    set(files ${ARGN})
    list(SORT files COMPARE FILE_BASENAME)
    list(LENGTH files count)
    set(entries "")
    set(digests "")
    set(index 0)
    foreach(file IN LISTS files)
        set(symbol ${name}_${index})
        file(SIZE ${file} length)
        file(SHA256 ${file} digest)
        get_filename_component(base ${file} NAME)
        string(APPEND text "\nextern const char ${symbol}[];\n"
               "__asm__(\".pushsection .rodata\\n.globl ${symbol}\\n${symbol}:\\n\"\n"
               "        \".incbin \\\"${file}\\\"\\n.byte 0\\n.popsection\");\n")
        string(APPEND entries "    {\"${base}\", ${symbol}, ${length}, \"${digest}\"},\n")
        string(APPEND digests "${base} ${digest}\n")
        math(EXPR index "${index} + 1")
    endforeach()
    string(APPEND text "\nconst struct embedded_file ${name}[] = {\n${entries}    {0},\n};\n")
    string(APPEND text "const size_t ${name}_count = ${count};\n")
    set(text "${text}" PARENT_SCOPE)
    set(digests "${digests}" PARENT_SCOPE)
endfunction()

# Writes each library with its hash in place of SOURCE_HASH, into a file of the library's name; their paths in ret_files.
function(libraries_name ret_files)
    get_filename_component(directory ${OUTPUT} DIRECTORY)
    file(REMOVE_RECURSE ${directory}/redis)
    set(files "")
    foreach(file IN LISTS ARGN)
        file(SHA256 ${file} hash)
        string(SUBSTRING ${hash} 0 12 hash)
        get_filename_component(base ${file} NAME_WE)
        file(READ ${file} source)
        string(REPLACE "SOURCE_HASH" ${hash} source "${source}")
        file(WRITE ${directory}/redis/${base}_${hash} "${source}")
        list(APPEND files ${directory}/redis/${base}_${hash})
    endforeach()
    set(${ret_files} ${files} PARENT_SCOPE)
endfunction()

embed(embedded_migrations ${migrations})
embed(embedded_functions ${functions})
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 12 digest)
string(APPEND text "const char embedded_functions_schema[] = \"tidings_${digest}\";\n")
libraries_name(libraries ${redis_functions})
embed(embedded_redis_functions ${libraries})
embed(embedded_web ${web})
embed(embedded_openapi ${openapi})
embed(embedded_reference ${reference})
file(WRITE ${OUTPUT} "${text}")
