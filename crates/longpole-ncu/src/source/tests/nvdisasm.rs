//! A sample in the layout of `nvdisasm`, written by hand.

use crate::source::{Disassembly, SmVersion, raw_architecture};

const CUBIN: &str = r#"	.target	sm_90

	.elftype	@"ET_EXEC"


//--------------------- .text._Z1kPf              --------------------------
	.section	.text._Z1kPf,"ax",@progbits
	.sectioninfo	@"SHI_REGISTERS=8"
	.align	128
        .global         _Z1kPf
        .type           _Z1kPf,@function
_Z1kPf:
.text._Z1kPf:
	//## File "/src/a.cu", line 4
        /*0000*/                   LDC R1, c[0x0][0x28] ;                    /* 0x00000a00ff017b82 */
                                                                             /* 0x000fe20000000800 */
.L_x_1:
        /*0010*/              @!P0 BRA `(.L_x_2) ;
        /*0020*/                   FADD R3, R3.reuse, R4 ;
        /*0030*/                   CALL.REL.NOINC `($slow) ;
.L_x_2:
        /*0040*/                   BRA `(.L_x_1);
        .type           $slow,@function
        .size           $slow,(.L_x_3 - $slow)
$slow:
        /*0050*/                   RET.REL.NODEC R4 `(_Z1kPf) ;
        /*0060*/                   CALL.ABS.NOINC `(elsewhere) ;
.L_x_3:

//--------------------- .nv.constant0._Z1kPf      --------------------------
	.section	.nv.constant0._Z1kPf,"a",@progbits
        /*0000*/ 	.byte	0xff, 0xff
"#;

#[test]
fn instructions_by_section_with_labels_resolved() {
    let disassembly = Disassembly::parse(CUBIN);
    assert_eq!(disassembly.functions(), ["_Z1kPf"]);
    let lines: Vec<_> = disassembly.instructions("_Z1kPf").iter().map(|(offset, text)| format!("{offset:x} {text}")).collect();
    assert_eq!(
        lines,
        [
            "0 LDC R1, c[0x0][0x28]",
            "10 @!P0 BRA 0x40",
            "20 FADD R3, R3, R4",
            "30 CALL.REL.NOINC 0x50",
            "40 BRA 0x10",
            "50 RET.REL.NODEC R4 0x0",
            "60 CALL.ABS.NOINC `(elsewhere)",
        ]
    );
    assert_eq!(disassembly.sass("_Z1kPf", 0x20), Some("FADD R3, R3, R4"));
    assert_eq!(disassembly.sass("_Z1kPf", 0x28), None);
    assert_eq!(disassembly.sass("other", 0), None);
}

#[test]
fn bare_code_has_no_sections() {
    let text = "\t.headerflags\t@\"EF_CUDA_SM90\"\n        /*0000*/                   S2R R4, SR_TID.X ;\n        /*0010*/               @P1 BRA 0x770 ;\n";
    let disassembly = Disassembly::parse_raw("k", text);
    assert_eq!(disassembly.sass("k", 0x10), Some("@P1 BRA 0x770"));
    assert!(Disassembly::parse(text).is_empty());
}

#[test]
fn anything_else_gives_nothing() {
    for text in ["", "nvdisasm fatal : no such file", "\t.section\n/*zz*/ X ;\n/*", "\t.section\t.text.k,\"ax\"\n/*0000*/ ;\n"] {
        assert!(Disassembly::parse(text).is_empty(), "{text}");
        assert!(Disassembly::parse_raw("k", text).is_empty(), "{text}");
    }
}

#[test]
fn chips_have_names() {
    let name = |major, minor| raw_architecture(SmVersion { major, minor });
    assert_eq!([name(7, 5), name(8, 6), name(9, 0), name(12, 0)], ["SM75", "SM86", "SM90a", "SM120a"]);
}
