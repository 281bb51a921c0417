# The names of C's enums.

"The values of one enum by name."
struct Enumeration
    noun::String
    items::Vector{Pair{Symbol,Int32}}
end

"The number that C knows a name by. Numbers are passed through, so that libzero itself judges those that have no name here."
function code(enumeration::Enumeration, name::Symbol)
    for (known, value) in enumeration.items
        known === name && return value
    end
    names = join((":$known" for (known, _) in enumeration.items), ", ")
    throw(ArgumentError("there is no $(enumeration.noun) :$name; there are $names"))
end
code(::Enumeration, value::Integer) = Int32(value)

"How texts name a number: by its name where it has one here."
function label(enumeration::Enumeration, value::Integer)
    for (name, known) in enumeration.items
        known == value && return ":$name"
    end
    return string(value)
end

"The name of a number that C handed out."
function name_of(enumeration::Enumeration, value::Integer)
    for (name, known) in enumeration.items
        known == value && return name
    end
    throw(ArgumentError("no $(enumeration.noun) has the number $value here; libzero is newer than this package"))
end
