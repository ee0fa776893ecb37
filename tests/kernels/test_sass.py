"""Counting machine instructions in listings made by hand."""

from __future__ import annotations

import pytest

from tests.kernels.sass import Instructions, UnknownFlowError, count


def listing(text: str) -> str:
    """Return lines as nvdisasm writes them: labels as they are, instructions with an address."""
    lines, address = [], 0
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith(":"):
            lines.append(line)
        else:
            lines.append(f"        /*{address:04x}*/                   {line} ;")
            address += 16
    return "\n".join(lines)


def test_no_loop_and_no_padding() -> None:
    found = listing("""
        MOV R1, c[0x0][0x28]
        EXIT
        .L_x_1:
        BRA `(.L_x_1)
        NOP
    """)
    assert count(found) == Instructions(2, 0)


def test_the_largest_loop_holds_the_loop_within_and_both_branches() -> None:
    found = listing("""
        S2R R0, SR_TID.X
        .L_x_0:
        @P0 BRA `(.L_x_2)
        IADD3 R0, R0, 0x1, RZ
        .L_x_1:
        IADD3 R1, R1, 0x1, RZ
        @!P1 BRA `(.L_x_1)
        .L_x_2:
        BRA.U UP0, `(.L_x_0)
        EXIT
    """)
    assert count(found) == Instructions(7, 5)


def test_a_loop_holds_the_function_that_it_calls() -> None:
    found = listing("""
        S2R R0, SR_TID.X
        CALL.REL.NOINC `(other)
        .L_x_0:
        CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64)
        CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64)
        @P0 BRA `(.L_x_0)
        EXIT
        $__internal_0_$__cuda_sm20_div_s64:
        MUFU.RCP R2, R2
        RET.REL.NODEC R2 `(kernel)
        other:
        RET.REL.NODEC R2 `(kernel)
    """)
    assert count(found) == Instructions(9, 5)


def test_code_out_of_the_way_is_of_the_loop_but_makes_none() -> None:
    found = listing("""
        @P0 BRA `(.L_x_3)
        .L_x_0:
        IADD3 R0, R0, 0x1, RZ
        @P1 BRA `(.L_x_2)
        .L_x_1:
        @P2 BRA `(.L_x_0)
        EXIT
        .L_x_2:
        IADD3 R1, R1, 0x1, RZ
        BRA `(.L_x_1)
        .L_x_3:
        BRA `(.L_x_0)
    """)
    assert count(found) == Instructions(8, 5)


def test_a_loop_goes_on_from_two_places() -> None:
    found = listing("""
        NOP
        .L_x_0:
        @P0 BRA `(.L_x_1)
        IADD3 R0, R0, 0x1, RZ
        BRA `(.L_x_0)
        .L_x_1:
        IADD3 R1, R1, 0x1, RZ
        @P1 BRA `(.L_x_0)
        EXIT
    """)
    assert count(found) == Instructions(6, 5)


def test_a_branch_to_a_register_goes_where_the_listing_says() -> None:
    found = listing("""
        .L_x_0:
        BRX R28 -0x14440 (*"BRANCH_TARGETS .L_x_1,.L_x_2"*)
        .L_x_1:
        @P0 BRA `(.L_x_0)
        EXIT
        .L_x_2:
        IADD3 R0, R0, 0x1, RZ
        BRA `(.L_x_0)
    """)
    assert count(found) == Instructions(5, 4)


def test_a_branch_to_a_register_that_may_go_anywhere_is_refused() -> None:
    with pytest.raises(UnknownFlowError, match="BRX"):
        count(listing("BRX R2 -0x10"))
