# Constants and layout of structs, as the generated tables have them.

function print_tables()
    for (name, value) in LibZero.CONSTANTS
        say("constant $name", value)
    end
    for (name, T) in LibZero.STRUCTS
        say("field $name *", 0, sizeof(T))
        for (index, field) in enumerate(fieldnames(T))
            say("field $name $field", fieldoffset(T, index), sizeof(fieldtype(T, index)))
        end
    end
end
