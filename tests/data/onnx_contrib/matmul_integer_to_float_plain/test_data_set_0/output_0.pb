JP(±ÙBe{‘B³˜B«àB©†ñBú^	Cµ
C±òC:Ô(C~_OCäåüBŒ¬òBþÔ
Câ7C„`$C43¶B‚rBËa³B§áB˜ÎC