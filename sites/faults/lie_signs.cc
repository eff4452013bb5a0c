#include <sotto/sites/faults/lie_signs.h>

#include <array>

namespace sotto {
namespace {

constexpr auto kLieSigns = std::to_array<LieSign>({
    {.lie = LieKind::takes, .word = "takes"},
    {.lie = LieKind::takes, .word = "sends-nothing"},
    {.lie = LieKind::takes, .word = "refused", .usual = false},
    {.lie = LieKind::swallows, .word = "takes"},
    {.lie = LieKind::swallows, .word = "sends-nothing"},
    {.lie = LieKind::swallows, .word = "confirms-nothing"},
    // One that denies what it has sent is refused, as if its state were old.
    {.lie = LieKind::swallows, .word = "refused", .usual = false},
    {.lie = LieKind::mints, .word = "mints"},
    {.lie = LieKind::mints, .word = "gives", .usual = false},
    {.lie = LieKind::mints, .word = "barred", .usual = false},
    {.lie = LieKind::mints, .word = "spoils", .usual = false},
    {.lie = LieKind::mints, .word = "stays-far", .usual = false},
    {.lie = LieKind::kills, .word = "barred"},
    {.lie = LieKind::kills, .word = "spoils"},
    {.lie = LieKind::kills, .word = "stays-far", .usual = false},
    {.lie = LieKind::kills, .word = "offence", .usual = false},
    {.lie = LieKind::late, .word = "late"},
    {.lie = LieKind::ahead, .word = "far-ahead"},
    {.lie = LieKind::stints, .word = "takes"},
    {.lie = LieKind::denies, .word = "confirms-nothing"},
    {.lie = LieKind::garbles, .word = "offence"},
    {.lie = LieKind::garbles, .word = "broke-rule"},
    {.lie = LieKind::floods, .word = "offence"},
    {.lie = LieKind::floods, .word = "broke-rule"},
});

}  // namespace

std::span<const LieSign> lie_signs() { return kLieSigns; }

}  // namespace sotto
